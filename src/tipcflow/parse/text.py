"""Bytes or text to lines with offsets: tolerant of bad bytes, ANSI colours and carriage returns."""

import re
from collections.abc import Iterator

# CSI sequences (colours, cursor movement) and OSC sequences (window titles) of ECMA-48.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


def strip_ansi(text: str) -> str:
    """The text without terminal control sequences."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def visible(text: str) -> tuple[str, list[int]]:
    """The text without terminal control sequences, and where each of its characters stands in `text`."""
    columns = list(range(len(text)))
    for found in reversed(list(_ANSI.finditer(text))):
        del columns[found.start() : found.end()]
    return strip_ansi(text), columns


def lines_of(data: bytes | str) -> Iterator[tuple[int, str]]:
    """(byte offset of the line's start, line without its end) of a log.

    Only LF ends a line; a trailing CR is dropped, and of a progress bar that redraws itself with CR the last state
    counts. Bytes that are no UTF-8 become U+FFFD.
    """
    raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    start = 0
    while start < len(raw):
        end = raw.find(b"\n", start)
        end = len(raw) if end < 0 else end
        yield start, last_state(raw[start:end]).decode("utf-8", "replace")
        start = end + 1


def last_state(line: bytes) -> bytes:
    """A line without the CR of its end; of one that redraws itself with CR, the last state."""
    return line.rstrip(b"\r").rpartition(b"\r")[2] if b"\r" in line else line
