"""Layouts of lines: what all lines have in common that differ only in their digits, not in how many those are.

A training prints most of its lines in a few layouts: every number stands in the same columns. Lines of equal
length are put below each other; one comparison tells which of them are of a layout, and each number is a column
of words. That is several times as fast as looking for runs of digits (`tipcflow.parse.bulk.digits`), and gives the
same: lines of one layout are of one shape.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tipcflow.parse.bulk.digits import MOST_DIGITS, Bools, Floats, Indices, Ints, Words, joined_digits
from tipcflow.parse.bulk.shapes import EXACT, Number, Template, runs_of
from tipcflow.parse.chunks import LEAD, Block, Lines
from tipcflow.parse.rules.reading import Span, number_of

# Lines of a layout in a chunk for which it is worth its while.
WORTH = 32
# Layouts that are remembered, and for how many chunks after they last came when those are too many.
_MOST, _MOST_OF_A_LENGTH, _A_WHILE = 256, 8, 4
_TENS = 10.0 ** np.arange(2 * MOST_DIGITS + 1)
_ALL = (1 << 64) - 1


class Layout:
    """How lines of one layout are told, and read.

    Args:
        kind: how lines of their shape are read: by this template, or, where it is a text, not at all.
        raw: one line of the layout, as it stands in the log.
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
        """Which of these lines are of the layout."""
        # A byte below the least one wraps around and is far above.
        odd = np.asarray(np.subtract(block, self._least) > self._spread)
        fits: Bools = ~np.any(odd, axis=1) if odd.any() else np.ones(len(block), np.bool_)
        return fits

    def read(self, block: Block) -> "Laid":
        """All numbers of lines that fit."""
        assert self._rows is not None
        return Laid(block, self._rows, self._rows.read(block))


class _Rows:
    """Which digits of a line make which integers: those of 0.36012 make 036012, if they are not too many."""

    def __init__(self, numbers: dict[Span, Number], runs: Sequence[Span]) -> None:
        self.numbers = numbers
        self.row_of: dict[Span, tuple[int, int]] = {}  # number -> (row, row of its decimals or -1)
        self.decimals: dict[Span, int] = {}
        self.text_of: dict[Span, tuple[int, int]] = {}
        self._ends: list[tuple[int, int]] = []  # columns behind the digits, and behind those that go in front
        self._masks: list[tuple[int, int, int]] = []  # of the digits; shift and mask of those in front
        for span, number in numbers.items():
            if number.first >= 0:
                self._place(span, number, runs)
        self._two = [row for row, (_, front) in enumerate(self._ends) if front]
        self._mask = np.array([mask for mask, _, _ in self._masks], np.uint64)[:, None]
        self._shift = np.array([self._masks[row][1] for row in self._two], np.uint64)[:, None]
        self._front = np.array([self._masks[row][2] for row in self._two], np.uint64)[:, None]

    def _place(self, span: Span, number: Number, runs: Sequence[Span]) -> None:
        """Decide how a number is read."""
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
        """The integers: a row each, a column for each line."""
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
    """A mask for the values of the last so many characters of a word."""
    return int.from_bytes(b"\0" * (MOST_DIGITS - digits) + b"\x0f" * digits, "little")


def _word(block: Block, end: int) -> Words:
    """The eight characters before a column, of each line."""
    words: Words = block[:, end - MOST_DIGITS : end].view("<u8")[:, 0]
    return words


class Laid:
    """The numbers of lines of one layout."""

    def __init__(self, block: Block, rows: _Rows, integers: Words) -> None:
        self._block, self._rows, self._integers = block, rows, integers

    def floats(self, span: Span) -> Floats:
        """One number of every line."""
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
        # Both are exact: the quotient is what `float` makes of the text.
        if decimals or number.negative:
            values /= -_TENS[decimals] if number.negative else _TENS[decimals]
        return values

    def ints(self, span: Span | None) -> Ints:
        """Epoch, iteration or rank of every line; -1 where lines of this layout name none."""
        if span is None:
            return np.full(len(self._block), -1, dtype=np.int32)
        values: Ints = self._integers[self._rows.row_of[span][0]].astype(np.int32)
        return values


class Found(NamedTuple):
    """Lines of one layout: below each other, and their numbers in the chunk."""

    layout: Layout
    block: Block
    lines: Indices


class Layouts:
    """The layouts of one log that were seen in it so far, by the length of their lines."""

    def __init__(self) -> None:
        self._known: dict[int, list[Layout]] = {}
        self._used: dict[Layout, int] = {}
        self._chunk = 0

    def split(self, lines: Lines) -> tuple[list[Found], Indices]:
        """Lines of known layouts, and the numbers of all others."""
        self._chunk += 1
        lengths = lines.ends - lines.starts
        counts = np.bincount(lengths)
        left = np.ones(len(lengths), np.bool_)
        several: list[Found] = []
        for length, layouts in self._known.items():
            if length >= len(counts) or counts[length] < WORTH:
                continue
            found = self._told_apart(layouts, lines, np.flatnonzero(lengths == length), length)
            for one in found:
                left[one.lines] = False
            # Those that most lines are of come first the next time.
            often = {one.layout: len(one.lines) for one in found}
            layouts.sort(key=lambda layout: often.get(layout, 0), reverse=True)
            several += found
        return several, np.flatnonzero(left)

    def _told_apart(self, layouts: list[Layout], lines: Lines, numbers: Indices, length: int) -> list[Found]:
        """Which of these lines of one length are of which layout."""
        found = []
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
                found.append(Found(layout, block, numbers))
                break
            found.append(Found(layout, block[fits], numbers[fits]))
            numbers, block = numbers[~fits], block[~fits]
        return found

    def learn(self, kind: Template | str, lines: Lines, numbers: Indices) -> None:
        """Remember the layouts of these lines, which are all of one shape, as far as that is worth it."""
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
            known = self._known.setdefault(length, [])
            if any(one.fits(lines.block(number, length)).all() for one in known):
                continue
            if len(known) < _MOST_OF_A_LENGTH and len(self._used) < _MOST:
                layout = Layout(kind, raw)
                known.append(layout)
                self._used[layout] = self._chunk

    def _forget(self) -> None:
        """Drop what has not come for a while: most layouts do not come back, as numbers grow."""
        self._used = {one: used for one, used in self._used.items() if used > self._chunk - _A_WHILE}
        kept = {length: [one for one in some if one in self._used] for length, some in self._known.items()}
        self._known = {length: some for length, some in kept.items() if some}
