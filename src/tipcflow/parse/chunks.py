"""A log in chunks of whole lines, and where their lines are."""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from tipcflow.parse.text import last_state

Bools = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]
Block = npt.NDArray[np.uint8]

# Pieces of a log are best of this size: larger ones make arrays that no longer fit into the processor's cache.
CHUNK = 1 << 21
# In front of each line stand so many other bytes: a word of eight may begin there.
LEAD = 8
_NEWLINE = ord("\n")
# A line that is longer is nobody's; of such a line (a binary file may have no end of line at all) no more is kept
# than shows that.
_LONGEST = 1 << 20
_SHOWS = 1 << 17


class Lines:
    """The lines of a chunk.

    Attributes:
        data: the chunk, with `LEAD` other bytes in front and with an end behind its last line.
        starts, ends: of each line, in `data`.
    """

    def __init__(self, chunk: bytes) -> None:
        end = b"" if chunk.endswith(b"\n") else b"\n"
        self.data = b"\n" * LEAD + chunk + end
        self.ends: Indices = newlines(np.frombuffer(self.data, np.uint8)[LEAD:]) + LEAD
        self.starts: Indices = np.concatenate(([LEAD], self.ends[:-1] + 1))

    def __len__(self) -> int:
        return len(self.ends)

    def line(self, number: int) -> bytes:
        """The text of a line."""
        return self.data[self.starts[number] : self.ends[number]]

    def block(self, numbers: Indices, length: int) -> Block:
        """Lines of equal length below each other, each with the `LEAD` bytes before it."""
        width = LEAD + length
        windows = np.ndarray((len(self.data) - width + 1, width), np.uint8, buffer=self.data, strides=(1, 1))
        block: Block = windows[self.starts[numbers] - LEAD]
        return block

    def chosen(self, numbers: Indices) -> bytes:
        """A chunk of some of the lines."""
        if len(numbers) == len(self):
            return self.data[LEAD:]
        return b"".join(self.data[start : end + 1] for start, end in self._spans(numbers))

    def _spans(self, numbers: Indices) -> Iterator[tuple[int, int]]:
        return zip(self.starts[numbers].tolist(), self.ends[numbers].tolist(), strict=True)


def newlines(text: Block) -> Indices:
    """Where the lines of a text end."""
    ends: Bools = text == _NEWLINE
    whole = len(ends) // 8 * 8
    words = ends[:whole].view("<u8")
    # Lines are long, as a rule: most words of eight bytes have no end in them, and all others one.
    at = np.flatnonzero(words != 0)
    found = words[at]
    if (found & (found - np.uint64(1))).any():
        return np.flatnonzero(ends)
    places = at * 8 + ((np.frexp(found.astype(np.float64))[1] - 1) >> 3)
    return np.concatenate((places, np.flatnonzero(ends[whole:]) + whole))


def chunks(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """(where it begins in the log, whole lines) of a log that comes in pieces of any size."""
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
            # The line that was cut is a chunk of its own: places behind it are as in the log.
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
    """So much of a line without its end that the same is read of the whole line: its last state, and that it is
    too long."""
    return last_state(line)[:_SHOWS] + (b"\r" if line.endswith(b"\r") else b"")
