"""A log in bulk: whole chunks to columns, with the same result as line by line, many times as fast.

The lines of a chunk are sorted by shape (`tipcflow.parse.shapes`); one line of each shape is read as ever, and
tells where the numbers of all others stand, which numpy then takes at once. Lines of rare shapes, of shapes
that a look at one line does not settle, and whole chunks with something in them that changes the meaning of
other lines are read one by one.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np
import numpy.typing as npt

from tipcflow.domain import Phase
from tipcflow.parse.digits import Digits, Floats, Indices, Ints
from tipcflow.parse.line_format import LineFormat
from tipcflow.parse.sample import Sample
from tipcflow.parse.scan import MAX_LINE, Scan, spot
from tipcflow.parse.shapes import Template, Values
from tipcflow.parse.side import Side
from tipcflow.parse.text import last_state, visible

# Larger chunks make arrays that the C library gives back to the system after each one: a third of all time.
CHUNK = 1 << 19
# Shapes that are remembered; a log of more kinds of lines than that is none.
_SHAPES = 20_000
# How lines of a shape are read when not by a template of its own: blank, unknown ("?"), one by one, too long
# for bulk;
# or the whole chunk one by one, as the line may change what others mean.
_STEERS = "steers"
_SETTLED: tuple[str | None, ...] = ("", "?", None, "long", _STEERS)
_LONG = _SETTLED.index("long")
_NEW = len(_SETTLED)

Offsets = npt.NDArray[np.int64]
Key = tuple[str, Phase, str]


@dataclass(frozen=True)
class Column:
    """The samples of one metric in a chunk, in the order of the log; all arrays are equally long."""

    values: Floats
    epoch: Ints
    iteration: Ints
    rank: Ints
    offset: Offsets


@dataclass
class Batch:
    """What one chunk says.

    Attributes:
        lines: how many there were; `blank` of them empty.
        kinds: format, or what else a line is part of -> lines.
        columns: (metric, phase, unit) -> samples.
    """

    lines: int = 0
    blank: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    columns: dict[Key, Column] = field(default_factory=dict)


@dataclass(frozen=True)
class _Piece:
    """Samples of one metric that were read together: `order` is the number of the line in the chunk."""

    source: int
    order: Indices
    values: Floats
    epoch: Ints
    iteration: Ints
    rank: Ints


class Columns:
    """Reads chunks of one log."""

    def __init__(self, formats: tuple[LineFormat, ...], side: Side | None = None) -> None:
        self._scan = Scan(formats)
        self._side = side or Side(())
        self._bulk = all(form.steady for form in formats)
        self._kinds: dict[bytes, int] = {}
        self._templates: list[Template | str | None] = [*_SETTLED, "new"]
        self._steering = [text.encode() for text in self._scan.steering]

    def batch(self, chunk: bytes, base: int) -> Batch:
        """The next whole lines of the log, which begin at byte `base`."""
        digits = Digits(chunk)
        batch = _Building(digits, base)
        if not (self._bulk and self._scan.steady and self._in_bulk(batch)):
            self._one_by_one(batch, range(len(digits)))
        if len(self._templates) > _SHAPES:
            self._kinds.clear()
            del self._templates[_NEW + 1 :]
        return batch.done()

    def _in_bulk(self, batch: "_Building") -> bool:
        """Read the batch, unless a line in it changes what others mean."""
        digits = batch.digits
        kinds = np.fromiter(map(self._kinds.get, digits.shapes, repeat(_NEW)), np.intp, len(digits))
        single = digits.long(MAX_LINE)
        for number in single:
            kinds[number] = _LONG
            if any(text in digits.line(number) for text in self._steering):
                return False
        for number in np.flatnonzero(kinds == _NEW).tolist():
            kinds[number] = self._kind(digits.shapes[number], digits.line(number))
        present = np.flatnonzero(np.bincount(kinds, minlength=len(self._templates))).tolist()
        found = [(self._templates[kind], np.flatnonzero(kinds == kind)) for kind in present if kind != _LONG]
        if any(template == _STEERS for template, _ in found):
            return False
        for template, lines in found:
            if isinstance(template, str):
                batch.say(template, len(lines))
            elif template is None:
                single += lines.tolist()
            else:
                single += _lay_out(batch, template, lines)
        self._one_by_one(batch, sorted(single))
        return True

    def _kind(self, shape: bytes, line: bytes) -> int:
        """The number of a shape, which may have been seen in this chunk for the first time."""
        kind = self._kinds.get(shape)
        if kind is None:
            template = self._look(line)
            if isinstance(template, Template):
                kind = len(self._templates)
                self._templates.append(template)
            else:
                kind = _SETTLED.index(template)
            self._kinds[shape] = kind
        return kind

    def _look(self, line: bytes) -> Template | str | None:
        if any(text in line for text in self._steering):
            return _STEERS
        if not line.isascii() or b"\r" in line:
            return None
        text, columns = visible(line.decode("ascii"))
        spotted = spot(text, self._scan.formats)
        if spotted:
            return Template(text, columns, line, spotted)
        if self._side.may_want(text):
            return None
        return "?" if text.strip() else ""

    def _one_by_one(self, batch: "_Building", numbers: Iterable[int]) -> None:
        for number in numbers:
            raw = last_state(batch.digits.line(number)).decode("utf-8", "replace")
            repeats = self._scan.repeats
            line, spotted = self._scan.line(raw)
            if spotted:
                batch.say(spotted.form, 1)
                batch.take(number, self._scan.samples_in(line, spotted, offset=number))
            elif repeats or self._scan.repeats:
                batch.say("launch", 1)
                if line.startswith("LAUNCH "):
                    self._side.line(batch.offset(number), line)
            else:
                wanted = bool(line) and self._side.may_want(line)
                kind = self._side.line(batch.offset(number), line) if wanted else ""
                batch.say(kind or ("?" if raw.strip() else ""), 1)


def _lay_out(batch: "_Building", template: Template, lines: Indices) -> list[int]:
    """Read lines of one shape; those that turn out to be of another kind are given back."""
    values = template.read(batch.digits, lines)
    odd = template.odd(values)
    left: list[int] = []
    if odd is not None:
        left = [int(number) for number in lines[odd]]
        values = values.without(odd)
    if len(values.lines):
        batch.say(template.form, len(values.lines))
        batch.lay(template, values)
    return left


class _Building:
    """A batch in the making."""

    def __init__(self, digits: Digits, base: int) -> None:
        self.digits = digits
        self._batch = Batch(lines=len(digits))
        self._pieces: defaultdict[Key, list[_Piece]] = defaultdict(list)
        self._singles: defaultdict[Key, list[Sample]] = defaultdict(list)
        self._sources = 0
        self._offsets: Offsets = digits.line_starts - digits.line_starts[0] + base

    def offset(self, number: int) -> int:
        """Where a line begins in the log."""
        return int(self._offsets[number])

    def say(self, kind: str, lines: int) -> None:
        """Count lines: of a kind, '?' for unknown ones, '' for blank ones."""
        if kind == "":
            self._batch.blank += lines
        elif kind != "?":
            self._batch.kinds[kind] += lines

    def lay(self, template: Template, values: Values) -> None:
        """Take all numbers of lines of one shape."""
        for reading in template.readings:
            self._sources += 1
            where = values.ints(reading.epoch), values.ints(reading.iteration), values.ints(reading.rank)
            for one in reading.fields:
                piece = _Piece(self._sources, values.lines, values.floats(one.number), *where)
                self._pieces[one.metric, reading.phase, one.unit].append(piece)

    def take(self, number: int, samples: Iterator[Sample]) -> None:
        """Take the samples of one line; their offset is the line's number here."""
        for sample in samples:
            self._singles[sample.metric, sample.phase, sample.unit].append(sample)

    def done(self) -> Batch:
        """The batch, with the columns in the order of the log."""
        for key, samples in self._singles.items():
            self._pieces[key].append(_piece(samples))
        sorts: dict[tuple[int, ...], Callable[[Floats], Column]] = {}
        for key, pieces in self._pieces.items():
            sources = tuple(piece.source for piece in pieces)
            make = sorts.get(sources)
            if make is None:
                make = self._sorter(pieces)
                if 0 not in sources:
                    sorts[sources] = make
            values = pieces[0].values if len(pieces) == 1 else np.concatenate([one.values for one in pieces])
            self._batch.columns[key] = make(values)
        return self._batch

    def _sorter(self, pieces: list[_Piece]) -> Callable[[Floats], Column]:
        """Puts values of these pieces into the order of the log."""
        order = np.concatenate([piece.order for piece in pieces])
        sort = np.argsort(order, kind="stable")
        epoch, iteration, rank = (
            np.concatenate([getattr(piece, name) for piece in pieces])[sort]
            for name in ("epoch", "iteration", "rank")
        )
        offset = self._offsets[order[sort]]
        return lambda values: Column(values[sort], epoch, iteration, rank, offset)


def _piece(samples: list[Sample]) -> _Piece:
    def ints(name: str) -> Ints:
        return np.array([getattr(sample, name) for sample in samples], dtype=np.int32)

    order = np.array([sample.offset for sample in samples], dtype=np.intp)
    values = np.array([sample.value for sample in samples])
    return _Piece(0, order, values, ints("epoch"), ints("iteration"), ints("rank"))


def batches(pieces: Iterable[bytes], columns: Columns) -> Iterator[Batch]:
    """The batches of a log that comes in pieces of any size.

    Args:
        pieces: the log's bytes; pieces of `CHUNK` bytes are best.
    """
    rest, base = b"", 0
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if not end:
            rest += piece
            continue
        chunk = rest + piece[:end] if rest else piece[:end]
        yield columns.batch(chunk, base)
        base += len(chunk)
        rest = piece[end:]
    if rest:
        yield columns.batch(rest, base)
