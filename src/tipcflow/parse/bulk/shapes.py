"""Shapes of lines: lines of one shape differ only in their digits.

`[Epoch 1, iter: 20] loss: 5.347` and `[Epoch 3, iter: 4780] loss: 11.8` have the shape `[Epoch 0, iter: 0]
loss: 0.0`. Rules treat all runs of digits alike (`tipcflow.parse.rules.reading`), so one line determines
which runs of digits form which numbers in all lines of its shape.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tipcflow.parse.bulk.digits import MOST_DIGITS, Bools, Digits, Floats, Indices, Ints
from tipcflow.parse.rules.reading import Span, number_of
from tipcflow.parse.training.scan import MatchedLine

# Numbers of up to 15 digits, and the powers of ten that divide them, are exact in a double: the quotient equals
# `float` of the text (both are correctly rounded).
EXACT = 15
_TENS = 10 ** np.arange(MOST_DIGITS + 1, dtype=np.uint64)
_SCALES = 10.0 ** np.arange(MOST_DIGITS + 1)


@dataclass(frozen=True)
class Number:
    """The position of one number in lines of the shape.

    Attributes:
        before, after: its text before its first and after its last digits (minus sign, point, exponent).
        first, last: indices of its first and last run of digits in the line; -1, -1 for none (nan, inf).
        whole: row of its integer part among the values read; -1 if it must be read as text.
        part: row of its decimals, -1 for none.
    """

    text: str
    first: int
    last: int
    before: int
    after: int
    whole: int = -1
    part: int = -1

    @property
    def negative(self) -> bool:
        """Return whether it has a minus sign."""
        return self.text.startswith("-")


class Template:
    """Reads lines of one shape in bulk.

    Args:
        line: one line of the shape, without colors.
        columns: of each of its characters, the position in the line as in the log.
        raw: the line as in the log.

    Attributes:
        numbers: position of each number, by its span in the line without colors.
        names: runs of digits that are part of names.
    """

    def __init__(self, line: str, columns: Sequence[int], raw: bytes, spotted: MatchedLine) -> None:
        self.form = spotted.form
        self.readings = spotted.readings
        runs = runs_of(raw)
        of_column = {column: run for run, (start, end) in enumerate(runs) for column in range(start, end)}
        at = [of_column.get(column, -1) for column in columns]
        fields = [field for reading in spotted.readings for field in reading.fields]
        names = sorted({at[place] for field in fields for place in range(*field.name)} - {-1})
        spans = dict.fromkeys(field.number for field in fields)
        for reading in spotted.readings:
            spans |= dict.fromkeys(span for span in (reading.epoch, reading.iteration, reading.rank) if span)
        wanted = dict.fromkeys(names)
        self.numbers = {span: _number(line, span, at, wanted) for span in spans}
        self._runs = np.array(list(wanted), dtype=np.intp)
        self.names = tuple(names)
        self._named_texts = texts = [raw[slice(*runs[run])] for run in names]
        self._named = np.array([int(text) for text in texts], dtype=np.uint64)[:, None]
        self._lengths = np.array([len(text) for text in texts], dtype=np.intp)[:, None]

    def read(self, digits: Digits, lines: Indices) -> "Values":
        """Read all values of these lines of a chunk."""
        runs = self._runs[:, None] + digits.first_run[lines]
        values, lengths = digits.integers(runs)
        return Values(digits, lines, values, lengths, self.numbers)

    def find_outliers(self, values: "Values") -> Bools | None:
        """Return which lines have names other than the template's and must be parsed one by one; None if there
        are none."""
        if not self.names:
            return None
        other = values.integers[: len(self.names)] != self._named
        other |= values.lengths[: len(self.names)] != self._lengths
        outliers: Bools = other.any(axis=0)
        return outliers if outliers.any() else None

    def has_names_of(self, raw: bytes) -> bool:
        """Return whether a line of the shape has the template's names."""
        runs = runs_of(raw)
        return [raw[slice(*runs[run])] for run in self.names] == self._named_texts


@dataclass(frozen=True)
class Values:
    """The values of lines of one shape: rows are runs of digits, columns are lines."""

    digits: Digits
    lines: Indices
    integers: "np.ndarray[tuple[int, int], np.dtype[np.uint64]]"
    lengths: "np.ndarray[tuple[int, int], np.dtype[np.intp]]"
    numbers: dict[Span, Number]

    def without(self, outliers: Bools) -> "Values":
        """Return the values of the other lines."""
        keep = ~outliers
        return Values(self.digits, self.lines[keep], self.integers[:, keep], self.lengths[:, keep], self.numbers)

    def floats(self, span: Span) -> Floats:
        """Return one value of every line."""
        number = self.numbers[span]
        if number.first < 0:
            return np.full(len(self.lines), number_of(number.text))
        if number.whole < 0:
            return self._texts(number, np.arange(len(self.lines)))
        whole = self.integers[number.whole]
        if number.part < 0:
            values = whole.astype(np.float64)
        else:
            decimals = self.lengths[number.part]
            values = (whole * _TENS[decimals] + self.integers[number.part]) / _SCALES[decimals]
            long = np.flatnonzero(self.lengths[number.whole] + decimals > EXACT)
            if len(long):
                values[long] = np.abs(self._texts(number, long))
        return np.negative(values, dtype=np.float64) if number.negative else np.asarray(values, np.float64)

    def ints(self, span: Span | None) -> Ints:
        """Return the epoch, iteration or rank of every line; -1 if lines of this shape name none."""
        if span is None:
            return np.full(len(self.lines), -1, dtype=np.int32)
        return np.asarray(self.integers[self.numbers[span].whole], np.int32)

    def _texts(self, number: Number, which: Indices) -> Floats:
        """Return one value of some of the lines, parsed as text."""
        first = self.digits.first_run[self.lines[which]]
        starts = self.digits.starts[first + number.first] - number.before
        ends = self.digits.ends[first + number.last] + number.after
        data = self.digits.data
        return np.array(
            [float(data[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        )


def runs_of(raw: bytes) -> list[Span]:
    """Return the runs of digits of a line."""
    runs: list[Span] = []
    for column, byte in enumerate(raw):
        if 48 <= byte <= 57:
            if runs and runs[-1][1] == column:
                runs[-1] = (runs[-1][0], column + 1)
            else:
                runs.append((column, column + 1))
    return runs


def _number(line: str, span: Span, at: Sequence[int], wanted: dict[int, None]) -> Number:
    """Choose how the number at `span` is read; add the required runs to `wanted`."""
    text = line[slice(*span)]
    places = [place for place in range(*span) if at[place] >= 0]
    if not places:
        return Number(text, -1, -1, 0, 0)
    runs = list(dict.fromkeys(at[place] for place in places))
    before, after = places[0] - span[0], span[1] - places[-1] - 1
    plain = not text.strip("+-.0123456789") and len(runs) <= 2 and text.lstrip("+-")[:1].isdigit()
    if not plain:
        return Number(text, runs[0], runs[-1], before, after)
    rows = []
    for run in runs:
        wanted.setdefault(run)
        rows.append(list(wanted).index(run))
    return Number(text, runs[0], runs[-1], before, after, rows[0], rows[1] if len(rows) > 1 else -1)
