"""Joins JSON objects that span several lines, as `json.dump(…, indent=4)` writes them, into one line each.

    {
        "model_name": "ResNet50_bs256_fp32_MultiP_DP",
        "ips": 2564.1,
        "device_num": "N4C32"
    }

Only flat objects of plain values are joined, because benchmarks write only these.
"""

import re

# A benchmark's object has about twenty members; a longer object is something else and is not stored.
_MOST_LINES = 100
# Of a line without leading and trailing spaces.
_MEMBER = re.compile(r'"[^"]*"\s*:\s*(?:"[^"]*"|[^\s"{}\[\],]+)\s*,?')
_NESTED = re.compile(r'"[^"]*"\s*:\s*[\[{]')


def may_be_object(line: str) -> bool:
    """Return whether a line may be part of such an object, depending on the lines around it."""
    text = line.strip()
    if text in ("{", "}", "},"):
        return True
    return text.startswith('"') and bool(_MEMBER.fullmatch(text) or _NESTED.fullmatch(text))


class ObjectReader:
    """Joins objects line by line.

    Attributes:
        lines: number of lines of the last complete object.
        offset: its start (in the caller's unit).
    """

    def __init__(self) -> None:
        self.lines = 0
        self.offset = -1
        self._parts: list[str] = []
        self._begin = -1

    def line(self, offset: int, line: str) -> str:
        """Process the next line; return the whole object as one line if it ends here, otherwise ''."""
        text = line.strip()
        if text == "{":
            self._parts, self._begin = [text], offset
        elif self._parts and text in ("}", "},") and len(self._parts) > 1:
            self.lines, self.offset = len(self._parts) + 1, self._begin
            whole, self._parts = " ".join([*self._parts, "}"]), []
            return whole
        elif self._parts and len(self._parts) < _MOST_LINES and _MEMBER.fullmatch(text):
            self._parts.append(text)
        elif text:
            self._parts = []
        return ""
