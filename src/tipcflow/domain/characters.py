"""Characters that no reader sees: control characters, spaces other than the ASCII space, and format characters."""

import unicodedata

# Control (Cc), format (Cf), separators (Z*), private (Co), surrogate (Cs) and unassigned (Cn) characters.
_INVISIBLE = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp", "Co", "Cs", "Cn"})
_NAMES = {
    0x00: "NUL",
    0x07: "BELL",
    0x08: "BACKSPACE",
    0x09: "TAB",
    0x0B: "VERTICAL TAB",
    0x0C: "FORM FEED",
    0x0D: "CARRIAGE RETURN",
    0x1B: "ESCAPE",
    0x7F: "DELETE",
    0x85: "NEXT LINE",
}


def first_invisible(text: str, *, allowed: str = " \t") -> tuple[int, str] | None:
    """Return the index and the description of the first invisible character; None if there is none.

    Args:
        text: any text.
        allowed: characters that are accepted; a space counts as visible.
    """
    if text.isascii() and text.isprintable():
        return None
    for place, character in enumerate(text):
        if character not in allowed and character != " " and unicodedata.category(character) in _INVISIBLE:
            return place, describe(character)
    return None


def describe(character: str) -> str:
    """Return code point and name of a character, for example `U+200B (ZERO WIDTH SPACE)`."""
    code = ord(character)
    name = _NAMES.get(code) or unicodedata.name(character, "")
    if not name and unicodedata.category(character) == "Cc":
        name = "control character"
    return f"U+{code:04X}" + (f" ({name})" if name else "")
