"""The values of one chunk of a log, as columns."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tipcflow.domain import Phase
from tipcflow.parse.bulk.digits import Floats, Indices, Ints
from tipcflow.parse.chunks import Lines
from tipcflow.parse.rules.reading import Reading, Span
from tipcflow.parse.sample import Sample

Offsets = npt.NDArray[np.int64]
Key = tuple[str, Phase, str]


@dataclass(frozen=True)
class Column:
    """The samples of one metric in a chunk, in the order of the log; all arrays have the same length."""

    values: Floats
    epoch: Ints
    iteration: Ints
    rank: Ints
    offset: Offsets


@dataclass
class Batch:
    """The parse result of one chunk.

    Attributes:
        lines: number of lines, of which `blank` are empty.
        kinds: format, or other kind of line -> number of lines.
        columns: (metric, phase, unit) -> samples.
    """

    lines: int = 0
    blank: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    columns: dict[Key, Column] = field(default_factory=dict)


class Numbers(Protocol):
    """The values of lines that were parsed together, addressed by their spans in one of these lines."""

    def floats(self, span: Span) -> Floats:
        """Return one value of every line."""

    def ints(self, span: Span | None) -> Ints:
        """Return the epoch, iteration or rank of every line; -1 without a span."""


@dataclass(frozen=True)
class _Piece:
    """Samples of one metric that were parsed together; `order` holds the line numbers in the chunk."""

    source: int
    order: Indices
    values: Floats
    epoch: Ints
    iteration: Ints
    rank: Ints


class BatchBuilder:
    """Builds a batch."""

    def __init__(self, lines: Lines, base: int) -> None:
        self.lines = lines
        self._batch = Batch(lines=len(lines))
        self._pieces: defaultdict[Key, list[_Piece]] = defaultdict(list)
        self._singles: defaultdict[Key, list[Sample]] = defaultdict(list)
        self._sources = 0
        self._offsets: Offsets = lines.starts - lines.starts[0] + base

    def offset(self, number: int) -> int:
        """Return the byte offset of a line in the log."""
        return int(self._offsets[number])

    def count(self, kind: str, lines: int) -> None:
        """Count lines of a kind; '?' is unknown, '' is empty."""
        if kind == "":
            self._batch.blank += lines
        elif kind != "?":
            self._batch.kinds[kind] += lines

    def add_block(self, form: str, readings: Sequence[Reading], order: Indices, numbers: Numbers) -> None:
        """Add all values of lines that were parsed together; `order` holds the line numbers."""
        self.count(form, len(order))
        for reading in readings:
            self._sources += 1
            where = numbers.ints(reading.epoch), numbers.ints(reading.iteration), numbers.ints(reading.rank)
            for value in reading.fields:
                piece = _Piece(self._sources, order, numbers.floats(value.number), *where)
                self._pieces[value.metric, reading.phase, value.unit].append(piece)

    def take(self, number: int, samples: Iterator[Sample]) -> None:
        """Add the samples of one line; their `offset` is the line number in the chunk."""
        for sample in samples:
            self._singles[sample.metric, sample.phase, sample.unit].append(sample)

    def done(self) -> Batch:
        """Return the batch, with the columns in the order of the log."""
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
            values = pieces[0].values if len(pieces) == 1 else np.concatenate([piece.values for piece in pieces])
            self._batch.columns[key] = make(values)
        return self._batch

    def _sorter(self, pieces: list[_Piece]) -> Callable[[Floats], Column]:
        """Return a function that sorts values of these pieces into the order of the log."""
        if len(pieces) == 1 and pieces[0].source:
            # Lines that were parsed together are already in order.
            only = pieces[0]
            where = only.epoch, only.iteration, only.rank, self._offsets[only.order]
            return lambda values: Column(values, *where)
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
