"""Masks secrets in a log that arrives in pieces."""

import re

from tipcflow.domain.masking.rules import ENVIRONMENT_LINE, KEY_BEGIN, KEY_END
from tipcflow.domain.masking.text import candidates, mask, visible

_LINE_ENDS = re.compile(r"(\n|\r\n?)")
# A line of a private key: letters of both cases, unlike a hash.
_KEY_LINE = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[A-Za-z0-9+/=]{40,76}")


class LineMask:
    """Masks a log that arrives in pieces. A piece may end within a secret, so text is held until its line ends.

    Lines end with a line feed or, as progress bars do, with a carriage return.

    Args:
        cut: the text may begin within a private key: lines in its form are hidden until two others follow, the
            first of which may be the end of such a line.
    """

    # A longer line is shown in parts.
    LONGEST = 64 * 1024
    # The longest secret in such a line.
    HELD = 4 * 1024
    # The longest end of a private key, which may be split between two parts.
    _KEY_END = 128

    def __init__(self, *, cut: bool = False) -> None:
        self._rest = ""
        self._unsure = 2 if cut else 0
        self._hidden = False  # within a line whose rest is hidden
        self._key = False  # within a private key

    def feed(self, piece: str) -> str:
        """Return the text that can be shown."""
        text = self._rest + piece
        whole = max(text.rfind("\n"), text.rfind("\r")) + 1
        lines, self._rest = text[:whole], text[whole:]
        # Most pieces have no secret: then their lines need not be separated.
        if self._hidden or self._key or self._unsure or candidates(visible(lines)):
            lines = self._lines(lines)
        if len(self._rest) <= self.LONGEST:
            return lines
        return lines + self._part()

    def flush(self) -> str:
        """Return the rest of an unfinished line."""
        rest, self._rest = self._rest, ""
        shown = self._line(rest)
        self._hidden = self._hidden or ENVIRONMENT_LINE.match(visible(rest)) is not None
        return shown

    def _part(self) -> str:
        """Return the masked beginning of a long line, and hold its end, in which a secret may begin."""
        rest = self._rest
        shown = self.flush()
        if self._key:
            self._rest = rest[-self._KEY_END :]
        if self._key or self._hidden:
            return shown
        for place in range(len(rest) - self.HELD, len(rest), self.HELD // 8):
            begin = mask(rest[:place])
            if begin + mask(rest[place:]) == shown:  # not within a secret
                self._rest = rest[place:]
                return begin
        self._rest = shown[-self.HELD :]
        return shown[: -self.HELD]

    def _lines(self, lines: str) -> str:
        shown = []
        # `split` keeps the ends: line, end, line, end, …, ''
        parts = _LINE_ENDS.split(lines)
        for line, end in zip(parts[::2], parts[1::2], strict=False):
            shown.append(self._line(line) + end)
            self._hidden = False
        return "".join(shown)

    def _line(self, line: str) -> str:
        if self._hidden:
            return ""
        if self._key:
            line = visible(line)
            end = KEY_END.search(line)
            if end is None:
                return ""
            self._key = False
            line = line[end.end() :]
        if self._unsure and line:
            if _KEY_LINE.fullmatch(visible(line)):
                return ""
            self._unsure -= 1
        shown = mask(line)
        if "BEGIN" in line:
            line = visible(line)
            begun = [match.end() for match in KEY_BEGIN.finditer(line)]
            self._key = bool(begun) and KEY_END.search(line, begun[-1]) is None
        return shown
