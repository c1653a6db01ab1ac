"""Finds the runs of digits in a chunk of text and computes their values, vectorised."""

import numpy as np
import numpy.typing as npt

from tipcflow.parse.chunks import LEAD, newlines

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Indices = npt.NDArray[np.intp]
Words = npt.NDArray[np.uint64]

# A run of digits is read as one 64-bit word, one byte per digit.
MOST_DIGITS = LEAD
_MASKS = np.array(
    [int.from_bytes(b"\0" * (8 - digits) + b"\x0f" * digits, "little") for digits in range(9)], dtype=np.uint64
)
_ZERO = ord("0")
_IS_DIGIT = bytes(48 <= byte <= 57 for byte in range(256))
_TO_SHAPE = bytes(_ZERO if 48 <= byte <= 57 else byte for byte in range(256))


class Digits:
    """Lines of a chunk: their positions, their runs of digits, and their shapes.

    Attributes:
        data: the chunk, with padding in front so that a whole word ends at the end of the first run.
        line_starts, line_ends: of each line, positions in `data`.
        starts, ends: of each run of digits, positions in `data`.
        first_run: of each line, the index of its first run.
        shapes: of each line, its text with `0` for each run of digits.
    """

    def __init__(self, chunk: bytes) -> None:
        end = b"" if chunk.endswith(b"\n") else b"\n"
        self.data = b"\n" * MOST_DIGITS + chunk + end
        text = np.frombuffer(self.data, np.uint8)
        is_digit = np.frombuffer(self.data.translate(_IS_DIGIT), np.bool_)
        edges = np.flatnonzero(is_digit[1:] != is_digit[:-1]) + 1
        self.starts: Indices = np.ascontiguousarray(edges[::2])
        self.ends: Indices = np.ascontiguousarray(edges[1::2])
        self.line_ends: Indices = newlines(text[MOST_DIGITS:]) + MOST_DIGITS
        self.line_starts: Indices = np.concatenate(([MOST_DIGITS], self.line_ends[:-1] + 1))
        self.first_run: Indices = np.searchsorted(self.starts, self.line_starts)
        # The first digit of each run is kept.
        kept = np.ones(len(text), np.bool_)
        np.logical_and(is_digit[1:], is_digit[:-1], out=kept[1:])
        np.logical_not(kept[1:], out=kept[1:])
        shapes = np.compress(kept, text).tobytes().translate(_TO_SHAPE)
        self.shapes = shapes.split(b"\n")[MOST_DIGITS:-1]
        self._words: Words = np.ndarray((len(text) - 7,), "<u8", buffer=self.data, strides=(1,))

    def __len__(self) -> int:
        return len(self.shapes)

    def line(self, number: int) -> bytes:
        """Return the bytes of a line."""
        return self.data[self.line_starts[number] : self.line_ends[number]]

    def long(self, most: int) -> list[int]:
        """Return lines with a run of more digits than fit into a word, and lines of more than `most` bytes."""
        runs = self.starts[self.ends - self.starts > MOST_DIGITS]
        with_runs = np.searchsorted(self.line_starts, runs, side="right") - 1
        lines = np.flatnonzero(self.line_ends - self.line_starts > most)
        return sorted({*with_runs.tolist(), *lines.tolist()})

    def integers(self, runs: Indices) -> tuple[Words, Indices]:
        """Return the values and lengths of runs of at most eight digits; values of longer runs are undefined."""
        ends = self.ends[runs]
        lengths = ends - self.starts[runs]
        words = self._words[ends - 8]
        # The first character is the lowest byte: bytes before the run are cleared, digits become their values.
        words &= _MASKS.take(lengths, mode="clip")
        return joined_digits(words), lengths


def joined_digits(words: Words) -> Words:
    """Convert words of eight digit values, first digit in the lowest byte, to integers, in place."""
    # Combines single digits, then pairs, then groups of four: each step multiplies and adds the upper
    # neighbor.
    words *= np.uint64(10 * 256 + 1)
    words >>= np.uint64(8)
    words &= np.uint64(0x00FF00FF00FF00FF)
    words *= np.uint64(100 * 65536 + 1)
    words >>= np.uint64(16)
    words &= np.uint64(0x0000FFFF0000FFFF)
    words *= np.uint64(10000 * 4294967296 + 1)
    words >>= np.uint64(32)
    return words
