"""The common result of all line formats: the values of a line as positions in its text.

Positions instead of values, so that one description serves both readers: line by line (`samples_of`), and whole
chunks (`tipcflow.parse.bulk.columns`), which read the same positions of every line of the same shape.

Rules must therefore keep one invariant: runs of up to eight digits are interchangeable. Whether and how a line
is parsed may depend on the positions of digits, never on which digits or how many; only names, whose positions
are returned, may contain specific digits (`top1`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tipcflow.domain import Phase
from tipcflow.parse.sample import Sample

Span = tuple[int, int]

# Epochs, iterations and ranks are integers of at most 9 digits (32 bits are always sufficient).
INDEX = r"\d{1,9}"


@dataclass(frozen=True, slots=True)
class Field:
    """One value: its tipcflow metric name and unit, the span of its number, and the span of the text that gives
    the name."""

    metric: str
    unit: str
    number: Span
    name: Span


@dataclass(frozen=True, slots=True)
class Reading:
    """The values of one line, or of one of several joined lines; a missing span means -1."""

    phase: Phase
    fields: tuple[Field, ...]
    epoch: Span | None = None
    iteration: Span | None = None
    rank: Span | None = None

    def moved(self, by: int, rank: Span | None) -> "Reading":
        """Return the same reading for a longer line with `by` additional characters in front, which contain a
        rank."""

        def shift(span: Span | None) -> Span | None:
            return span and (span[0] + by, span[1] + by)

        fields = tuple(
            Field(f.metric, f.unit, (f.number[0] + by, f.number[1] + by), (f.name[0] + by, f.name[1] + by))
            for f in self.fields
        )
        return replace(
            self,
            fields=fields,
            epoch=shift(self.epoch),
            iteration=shift(self.iteration),
            rank=shift(self.rank) or rank,
        )


def samples_of(reading: Reading, line: str, *, offset: int, rank: int = -1) -> Iterator[Sample]:
    """Yield the samples of a reading of that line; `rank` applies if the line names none."""
    epoch = _index(line, reading.epoch)
    iteration = _index(line, reading.iteration)
    own = _index(line, reading.rank)
    for field in reading.fields:
        start, end = field.number
        yield Sample(
            field.metric,
            number_of(line[start:end]),
            field.unit,
            reading.phase,
            epoch,
            iteration,
            offset,
            rank if own < 0 else own,
        )


def number_of(text: str) -> float:
    """Return the number in a text; nan if it is not a number (`None`), because a value was printed."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _index(line: str, span: Span | None) -> int:
    return -1 if span is None else int(line[span[0] : span[1]])
