"""Bulk log reader: whole chunks to columns, with the same result as line by line, several times faster.

Lines of a known layout (`tipcflow.parse.bulk.layouts`) are read first; these are nearly all lines. The other
lines are grouped by shape (`tipcflow.parse.bulk.shapes`): one line of each shape is parsed normally and
gives the positions of the values in all other lines of the shape, which numpy then reads at once. Three
cases are parsed line by line: rare shapes, shapes that one line does not determine, and chunks with a line
that changes the meaning of other lines.
"""

from collections.abc import Iterable, Iterator
from itertools import repeat

import numpy as np

from tipcflow.parse.bulk.batch import Batch, BatchBuilder
from tipcflow.parse.bulk.digits import Digits
from tipcflow.parse.bulk.layouts import Layouts
from tipcflow.parse.bulk.shapes import Template
from tipcflow.parse.chunks import Indices, Lines, chunks
from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.text import last_state, visible
from tipcflow.parse.training.scan import MAX_LINE, Scan, match_line
from tipcflow.parse.training.side import AuxiliaryLine

# Maximum number of stored shapes; a file with more kinds of lines is not a log.
_SHAPES = 20_000
# How lines of a shape without a template are read: blank, unknown ("?"), line by line, too long for bulk; or
# the whole chunk line by line, because the line may change the meaning of other lines.
_STEERS = "steers"
_SETTLED: tuple[str | None, ...] = ("", "?", None, "long", _STEERS)
_LONG = _SETTLED.index("long")
_NEW = len(_SETTLED)


class Columns:
    """Reads the chunks of one log."""

    def __init__(self, formats: tuple[LineFormat, ...], side: AuxiliaryLine | None = None) -> None:
        self._scan = Scan(formats)
        self._side = side or AuxiliaryLine(())
        self._bulk = all(form.steady for form in formats)
        self._kinds: dict[bytes, int] = {}
        self._templates: list[Template | str | None] = [*_SETTLED, "new"]
        self._steering = [text.encode() for text in self._scan.steering]
        self._layouts = Layouts()

    def batch(self, chunk: bytes, base: int) -> Batch:
        """Parse the next whole lines of the log, which start at byte `base`."""
        lines = Lines(chunk)
        batch = BatchBuilder(lines, base)
        if not (self._bulk and self._scan.steady and self._in_bulk(batch)):
            self._one_by_one(batch, range(len(lines)))
        if len(self._templates) > _SHAPES:
            self._kinds.clear()
            del self._templates[_NEW + 1 :]
        return batch.done()

    def _in_bulk(self, batch: BatchBuilder) -> bool:
        """Parse the batch unless one of its lines changes the meaning of other lines; return whether it was
        parsed."""
        laid, rest = self._layouts.split(batch.lines)
        if len(rest) and not self._by_shape(batch, rest):
            return False
        for layout, block, numbers in laid:
            if isinstance(layout.kind, str):
                batch.count(layout.kind, len(numbers))
            else:
                batch.add_block(layout.kind.form, layout.kind.readings, numbers, layout.read(block))
        return True

    def _by_shape(self, batch: BatchBuilder, rest: Indices) -> bool:
        """Parse these lines of the batch unless one of them changes the meaning of other lines: then parse
        none."""
        digits = Digits(batch.lines.chosen(rest))
        kinds = np.fromiter(map(self._kinds.get, digits.shapes, repeat(_NEW)), np.intp, len(digits))
        single = digits.long(MAX_LINE)
        for number in single:
            kinds[number] = _LONG
            if any(text in digits.line(number) for text in self._steering):
                return False
        for number in np.flatnonzero(kinds == _NEW).tolist():
            kinds[number] = self._kind(digits.shapes[number], digits.line(number))
        present = np.flatnonzero(np.bincount(kinds, minlength=len(self._templates))).tolist()
        groups = [(self._templates[kind], np.flatnonzero(kinds == kind)) for kind in present if kind != _LONG]
        if any(template == _STEERS for template, _ in groups):
            return False
        for template, lines in groups:
            if isinstance(template, str):
                batch.count(template, len(lines))
            elif template is None:
                single += lines.tolist()
            else:
                single += _lay_out(batch, template, digits, lines, rest)
            if template:
                self._layouts.learn(template, batch.lines, rest[lines])
        self._one_by_one(batch, rest[sorted(single)].tolist())
        return True

    def _kind(self, shape: bytes, line: bytes) -> int:
        """Return the index of a shape; the shape may be new in this chunk."""
        kind = self._kinds.get(shape)
        if kind is None:
            template = self._template_of(line)
            if isinstance(template, Template):
                kind = len(self._templates)
                self._templates.append(template)
            else:
                kind = _SETTLED.index(template)
            self._kinds[shape] = kind
        return kind

    def _template_of(self, line: bytes) -> Template | str | None:
        if not line.strip():
            return ""
        if any(text in line for text in self._steering):
            return _STEERS
        if not line.isascii() or b"\r" in line:
            return None
        text, columns = visible(line.decode("ascii"))
        spotted = match_line(text, self._scan.formats)
        if spotted:
            return Template(text, columns, line, spotted)
        if self._side.may_want(text):
            return None
        return "?" if text.strip() else ""

    def _one_by_one(self, batch: BatchBuilder, numbers: Iterable[int]) -> None:
        for number in numbers:
            raw = last_state(batch.lines.line(number)).decode("utf-8", "replace")
            repeats = self._scan.repeats
            line, spotted = self._scan.line(raw)
            if spotted:
                batch.count(spotted.form, 1)
                batch.take(number, self._scan.samples_in(line, spotted, offset=number))
            elif repeats or self._scan.repeats:
                batch.count("launch", 1)
                if line.startswith("LAUNCH "):
                    self._side.line(batch.offset(number), line)
            else:
                wanted = bool(line) and self._side.may_want(line)
                kind = self._side.line(batch.offset(number), line) if wanted else ""
                batch.count(kind or ("?" if raw.strip() else ""), 1)


def _lay_out(batch: BatchBuilder, template: Template, digits: Digits, lines: Indices, rest: Indices) -> list[int]:
    """Parse lines of one shape; return the numbers of lines that turn out to be of another kind."""
    values = template.read(digits, lines)
    outliers = template.find_outliers(values)
    left: list[int] = []
    if outliers is not None:
        left = [int(number) for number in lines[outliers]]
        values = values.without(outliers)
    if len(values.lines):
        batch.add_block(template.form, template.readings, rest[values.lines], values)
    return left


def batches(pieces: Iterable[bytes], columns: Columns, *, start: int = 0) -> Iterator[Batch]:
    """Yield the batches of a log that arrives in pieces of any size.

    Args:
        pieces: the log's bytes; pieces of `CHUNK` bytes are fastest.
        start: byte offset in the log at which the pieces begin.
    """
    for base, chunk in chunks(pieces):
        yield columns.batch(chunk, start + base)
