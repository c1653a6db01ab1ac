"""Layouts of lines: lines that differ only in their digits, with the same number of digits everywhere.

A training prints most of its lines in a few layouts, in which every number is in the same columns. Lines of
equal length are stacked as rows; one comparison selects the rows of a layout, and each number is a column of
words. This is several times as fast as searching for runs of digits (`tipcflow.parse.bulk.digits`), with the
same result: lines of one layout have one shape.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tipcflow.parse.bulk.digits import MOST_DIGITS, Bools, Floats, Indices, Ints, Words, joined_digits
from tipcflow.parse.bulk.shapes import EXACT, Number, Template, runs_of
from tipcflow.parse.chunks import LEAD, Block, Lines
from tipcflow.parse.rules.reading import Span, number_of

# Minimum number of lines of a layout in a chunk for which learning the layout is worthwhile.
WORTH = 32
# Maximum number of stored layouts, in total and per line length; beyond it, layouts not seen for 4 chunks are
# dropped.
_MOST, _MOST_OF_A_LENGTH, _A_WHILE = 256, 8, 4
_TENS = 10.0 ** np.arange(2 * MOST_DIGITS + 1)
_ALL = (1 << 64) - 1


class Layout:
    """Recognizes and reads the lines of one layout.

    Args:
        kind: how lines of this shape are read: by this template; if it is a text, not at all.
        raw: one line of the layout, as in the log.
    """

    def __init__(self, kind: Template | str, raw: bytes) -> None:
        self.kind = kind
        runs = runs_of(raw)
        names = {runs[run] for run in kind.names} if isinstance(kind, Template) else set()
        least = np.frombuffer(bytes(LEAD) + raw, np.uint8).copy()
        spread = np.zeros(len(least), np.uint8)
        spread[:LEAD] = 255
        for start, end in runs:
            if (start, end) not in names:
                least[LEAD + start : LEAD + end] = ord("0")
                spread[LEAD + start : LEAD + end] = 9
        self._least, self._spread = least, spread
        self._rows = _Rows(kind.numbers, runs) if isinstance(kind, Template) else None

    def fits(self, block: Block) -> Bools:
        """Return which of these lines have this layout."""
        # A byte below the minimum wraps around and is far above the spread.
        outliers = np.asarray(np.subtract(block, self._least) > self._spread)
        fits: Bools = ~np.any(outliers, axis=1) if outliers.any() else np.ones(len(block), np.bool_)
        return fits

    def read(self, block: Block) -> "Laid":
        """Read all values of matching lines."""
        assert self._rows is not None
        return Laid(block, self._rows, self._rows.read(block))


class _Rows:
    """Maps the digits of a line to integers: those of 0.36012 form 036012, unless there are too many."""

    def __init__(self, numbers: dict[Span, Number], runs: Sequence[Span]) -> None:
        self.numbers = numbers
        self.row_of: dict[Span, tuple[int, int]] = {}  # span of the number -> (row, row of its decimals or -1)
        self.decimals: dict[Span, int] = {}
        self.text_of: dict[Span, tuple[int, int]] = {}
        self._ends: list[tuple[int, int]] = []  # columns after the digits, and after the digits to prepend
        self._masks: list[tuple[int, int, int]] = []  # mask of the digits; shift and mask of the prepended digits
        for span, number in numbers.items():
            if number.first >= 0:
                self._place(span, number, runs)
        self._two = [row for row, (_, front) in enumerate(self._ends) if front]
        self._mask = np.array([mask for mask, _, _ in self._masks], np.uint64)[:, None]
        self._shift = np.array([self._masks[row][1] for row in self._two], np.uint64)[:, None]
        self._front = np.array([self._masks[row][2] for row in self._two], np.uint64)[:, None]

    def _place(self, span: Span, number: Number, runs: Sequence[Span]) -> None:
        """Choose how a number is read."""
        first, last = runs[number.first], runs[number.last]
        whole, part = first[1] - first[0], last[1] - last[0] if number.part >= 0 else 0
        if number.whole < 0 or whole + part > EXACT:
            self.text_of[span] = LEAD + first[0] - number.before, LEAD + last[1] + number.after
            return
        self.decimals[span] = part
        if not part:
            self.row_of[span] = self._row(first[1], whole), -1
        elif whole + part > MOST_DIGITS:
            self.row_of[span] = self._row(first[1], whole), self._row(last[1], part)
        else:
            self.row_of[span] = self._row(last[1], part, first[1], whole), -1

    def _row(self, end: int, digits: int, front_end: int = 0, front_digits: int = 0) -> int:
        mask = _upper(digits)
        self._ends.append((LEAD + end, LEAD + front_end if front_digits else 0))
        self._masks.append((mask, 8 * digits, _upper(digits + front_digits) & ~mask & _ALL))
        return len(self._ends) - 1

    def read(self, block: Block) -> Words:
        """Return the integers: one row per integer, one column per line."""
        words: Words = np.empty((len(self._ends), len(block)), np.uint64)
        for row, (end, _) in enumerate(self._ends):
            words[row] = _word(block, end)
        words &= self._mask
        if self._two:
            front: Words = np.empty((len(self._two), len(block)), np.uint64)
            for at, row in enumerate(self._two):
                front[at] = _word(block, self._ends[row][1])
            front >>= self._shift
            front &= self._front
            if len(self._two) == len(words):
                words |= front
            else:
                words[self._two] |= front
        return joined_digits(words)


def _upper(digits: int) -> int:
    """Return a mask for the digit values of the last `digits` characters of a word."""
    return int.from_bytes(b"\0" * (MOST_DIGITS - digits) + b"\x0f" * digits, "little")


def _word(block: Block, end: int) -> Words:
    """Return the eight characters before a column, for each line."""
    words: Words = block[:, end - MOST_DIGITS : end].view("<u8")[:, 0]
    return words


class Laid:
    """The values of lines of one layout."""

    def __init__(self, block: Block, rows: _Rows, integers: Words) -> None:
        self._block, self._rows, self._integers = block, rows, integers

    def floats(self, span: Span) -> Floats:
        """Return one value of every line."""
        rows = self._rows
        number = rows.numbers[span]
        if number.first < 0:
            return np.full(len(self._block), number_of(number.text))
        if span in rows.text_of:
            start, end = rows.text_of[span]
            texts = np.ascontiguousarray(self._block[:, start:end]).view(f"S{end - start}")[:, 0]
            return np.array([float(text) for text in texts.tolist()])
        row, low = rows.row_of[span]
        decimals = rows.decimals[span]
        values: Floats = self._integers[row].astype(np.float64)
        if low >= 0:
            values *= _TENS[decimals]
            values += self._integers[low]
        # Both integers are exact, so the quotient equals `float` of the text.
        if decimals or number.negative:
            values /= -_TENS[decimals] if number.negative else _TENS[decimals]
        return values

    def ints(self, span: Span | None) -> Ints:
        """Return the epoch, iteration or rank of every line; -1 if lines of this layout name none."""
        if span is None:
            return np.full(len(self._block), -1, dtype=np.int32)
        values: Ints = self._integers[self._rows.row_of[span][0]].astype(np.int32)
        return values


class LayoutRows(NamedTuple):
    """Lines of one layout: their rows, and their line numbers in the chunk."""

    layout: Layout
    block: Block
    lines: Indices


class Layouts:
    """The layouts of one log seen so far, by line length."""

    def __init__(self) -> None:
        self._known: dict[int, list[Layout]] = {}
        self._used: dict[Layout, int] = {}
        self._chunk = 0

    def split(self, lines: Lines) -> tuple[list[LayoutRows], Indices]:
        """Return the lines of known layouts, and the numbers of all other lines."""
        self._chunk += 1
        lengths = lines.ends - lines.starts
        counts = np.bincount(lengths)
        left = np.ones(len(lengths), np.bool_)
        all_matches: list[LayoutRows] = []
        for length, layouts in self._known.items():
            if length >= len(counts) or counts[length] < WORTH:
                continue
            matches = self._assign_lines(layouts, lines, np.flatnonzero(lengths == length), length)
            for match in matches:
                left[match.lines] = False
            # Layouts with the most lines are tried first in the next chunk.
            often = {match.layout: len(match.lines) for match in matches}
            layouts.sort(key=lambda layout: often.get(layout, 0), reverse=True)
            all_matches += matches
        return all_matches, np.flatnonzero(left)

    def _assign_lines(
        self, layouts: list[Layout], lines: Lines, numbers: Indices, length: int
    ) -> list[LayoutRows]:
        """Assign lines of one length to layouts."""
        matches = []
        block = lines.block(numbers, length)
        for layout in layouts:
            if len(numbers) < WORTH:
                break
            fits = layout.fits(block)
            count = np.count_nonzero(fits)
            if count < WORTH:
                continue
            self._used[layout] = self._chunk
            if count == len(fits):
                matches.append(LayoutRows(layout, block, numbers))
                break
            matches.append(LayoutRows(layout, block[fits], numbers[fits]))
            numbers, block = numbers[~fits], block[~fits]
        return matches

    def learn(self, kind: Template | str, lines: Lines, numbers: Indices) -> None:
        """Store the layouts of these lines, which all have one shape, where worthwhile."""
        if len(numbers) < WORTH:
            return
        lengths = lines.ends[numbers] - lines.starts[numbers]
        for length in np.flatnonzero(np.bincount(lengths) >= WORTH).tolist():
            number = numbers[np.argmax(lengths == length) :][:1]
            raw = lines.line(int(number[0]))
            if isinstance(kind, Template) and not kind.has_names_of(raw):
                continue
            if len(self._used) >= _MOST or len(self._known.get(length, ())) >= _MOST_OF_A_LENGTH:
                self._forget()
            layouts = self._known.setdefault(length, [])
            if any(candidate.fits(lines.block(number, length)).all() for candidate in layouts):
                continue
            if len(layouts) < _MOST_OF_A_LENGTH and len(self._used) < _MOST:
                layout = Layout(kind, raw)
                layouts.append(layout)
                self._used[layout] = self._chunk

    def _forget(self) -> None:
        """Drop layouts not seen recently: most layouts do not recur, because numbers grow."""
        self._used = {layout: used for layout, used in self._used.items() if used > self._chunk - _A_WHILE}
        remaining = {
            length: [layout for layout in some if layout in self._used] for length, some in self._known.items()
        }
        self._known = {length: some for length, some in remaining.items() if some}
