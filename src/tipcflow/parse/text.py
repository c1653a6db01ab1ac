"""Splits bytes or text into lines with offsets; tolerates invalid UTF-8, ANSI colors and carriage returns."""

import re
from collections.abc import Iterator

# CSI sequences (colors, cursor movement) and OSC sequences (window titles) of ECMA-48.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


def strip_ansi(text: str) -> str:
    """Return the text without terminal control sequences."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def visible(text: str) -> tuple[str, list[int]]:
    """Return the text without terminal control sequences, and the position of each of its characters in `text`."""
    columns = list(range(len(text)))
    for match in reversed(list(_ANSI.finditer(text))):
        del columns[match.start() : match.end()]
    return strip_ansi(text), columns


def lines_of(data: bytes | str) -> Iterator[tuple[int, str]]:
    """Yield (byte offset of the line's start, line without its line ending) of a log.

    Only LF ends a line; a trailing CR is dropped. Of a progress bar that is redrawn with CR, the last state is
    returned. Bytes that are not valid UTF-8 become U+FFFD.
    """
    raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    start = 0
    while start < len(raw):
        end = raw.find(b"\n", start)
        end = len(raw) if end < 0 else end
        yield start, last_state(raw[start:end]).decode("utf-8", "replace")
        start = end + 1


def last_state(line: bytes) -> bytes:
    """Return a line without its trailing CR; of a line that is redrawn with CR, the last state."""
    return line.rstrip(b"\r").rpartition(b"\r")[2] if b"\r" in line else line
