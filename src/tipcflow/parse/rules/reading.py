"""What a line says, as places in its text: the one form that all line formats answer in.

Places, not values, so that one description serves both readers: line by line (`samples_of`) and whole chunks at
once (`tipcflow.parse.bulk.columns`), which reads the same places of every line of the same shape.

The law that rules must keep for that: runs of up to eight digits are interchangeable. Whether and how a line is
read may depend on where digits stand, never on which and how many; only names, whose places are told, may hold
particular ones (`top1`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tipcflow.domain import Phase
from tipcflow.parse.sample import Sample

Span = tuple[int, int]

# Epochs, iterations and ranks are integers of at most so many digits (they fit into 32 bits everywhere).
INDEX = r"\d{1,9}"


@dataclass(frozen=True, slots=True)
class Field:
    """One number: our name and unit of it, where it stands, and where the text stands that the name comes from."""

    metric: str
    unit: str
    number: Span
    name: Span


@dataclass(frozen=True, slots=True)
class Reading:
    """The numbers of one line, or of one of several lines that were glued together; without a place: -1."""

    phase: Phase
    fields: tuple[Field, ...]
    epoch: Span | None = None
    iteration: Span | None = None
    rank: Span | None = None

    def moved(self, by: int, rank: Span | None) -> "Reading":
        """The same reading of a longer line that has `by` more characters in front, and a rank in them."""

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
    """The samples of a reading of that line; `rank` where the line itself names none."""
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
    """The number that a text is; nan where it is none (`None`): a value was printed, and it is no number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _index(line: str, span: Span | None) -> int:
    return -1 if span is None else int(line[span[0] : span[1]])
