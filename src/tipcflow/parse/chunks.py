"""Splits a log into chunks of whole lines and locates the lines."""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from tipcflow.parse.text import last_state

Bools = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]
Block = npt.NDArray[np.uint8]

# Best size of a piece of a log, bytes: arrays of larger pieces do not fit into the processor's cache.
CHUNK = 1 << 21
# Number of padding bytes before each line, so that an eight-byte word can start before the line.
LEAD = 8
_NEWLINE = ord("\n")
# Maximum length of a line, bytes; no format has longer lines. Of a longer line (a binary file may have no
# newline at all), only enough is kept to recognize that it is too long.
_LONGEST = 1 << 20
_SHOWS = 1 << 17


class Lines:
    """The lines of a chunk.

    Attributes:
        data: the chunk, with `LEAD` padding bytes in front and a newline after its last line.
        starts, ends: of each line, positions in `data`.
    """

    def __init__(self, chunk: bytes) -> None:
        end = b"" if chunk.endswith(b"\n") else b"\n"
        self.data = b"\n" * LEAD + chunk + end
        self.ends: Indices = newlines(np.frombuffer(self.data, np.uint8)[LEAD:]) + LEAD
        self.starts: Indices = np.concatenate(([LEAD], self.ends[:-1] + 1))

    def __len__(self) -> int:
        return len(self.ends)

    def line(self, number: int) -> bytes:
        """Return the bytes of a line."""
        return self.data[self.starts[number] : self.ends[number]]

    def block(self, numbers: Indices, length: int) -> Block:
        """Return lines of equal length as rows, each with the `LEAD` bytes before it."""
        width = LEAD + length
        windows = np.ndarray((len(self.data) - width + 1, width), np.uint8, buffer=self.data, strides=(1, 1))
        block: Block = windows[self.starts[numbers] - LEAD]
        return block

    def chosen(self, numbers: Indices) -> bytes:
        """Return a chunk of the selected lines."""
        if len(numbers) == len(self):
            return self.data[LEAD:]
        return b"".join(self.data[start : end + 1] for start, end in self._spans(numbers))

    def _spans(self, numbers: Indices) -> Iterator[tuple[int, int]]:
        return zip(self.starts[numbers].tolist(), self.ends[numbers].tolist(), strict=True)


def newlines(text: Block) -> Indices:
    """Return the positions of the newlines."""
    ends: Bools = text == _NEWLINE
    whole = len(ends) // 8 * 8
    words = ends[:whole].view("<u8")
    # Lines are usually long: most eight-byte words contain no newline, and the others contain one.
    at = np.flatnonzero(words != 0)
    hits = words[at]
    if (hits & (hits - np.uint64(1))).any():
        return np.flatnonzero(ends)
    places = at * 8 + ((np.frexp(hits.astype(np.float64))[1] - 1) >> 3)
    return np.concatenate((places, np.flatnonzero(ends[whole:]) + whole))


def chunks(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield (byte offset in the log, whole lines) of a log that arrives in pieces of any size."""
    rest, base, cut = b"", 0, 0
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if not end:
            rest += piece
            if len(rest) > _LONGEST:
                short = _shortened(rest)
                rest, cut = short, cut + len(rest) - len(short)
            continue
        begin = 0
        if cut:
            # The truncated line is a chunk of its own, so that later offsets match the log.
            begin = piece.find(b"\n") + 1
            yield base, rest + piece[:begin]
            rest, base, cut = b"", base + cut + len(rest) + begin, 0
        if end > begin:
            chunk = rest + piece[begin:end] if rest else piece[begin:end]
            yield base, chunk
            base += len(chunk)
        rest = piece[end:]
    if rest:
        yield base, rest


def _shortened(line: bytes) -> bytes:
    """Truncate a line without newline such that the parse result is unchanged: its last state, and that it is too
    long."""
    return last_state(line)[:_SHOWS] + (b"\r" if line.endswith(b"\r") else b"")
