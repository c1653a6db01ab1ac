"""The small functions that every suite's script parses lines with."""

from typing import Literal

Split = Literal["first", "rest"]

# A script, model or key of these words is none: there is nothing to run. (Arguments have a rule of their own,
# `is_null`.)
NOTHING = ("null", "")


def split_line(text: str, split: Split) -> tuple[str, str]:
    """Key and value of a line.

    `first`: fields 0 and 1 of the text cut at every colon, so a value ends at its own first colon.
    `rest`: cut at the first colon only; a line without a colon is its own key and value (PaddleDetection).
    """
    if split == "rest":
        key, colon, value = text.partition(":")
        return (key, value) if colon else (text, text)
    fields = text.split(":")
    return fields[0], fields[1] if len(fields) > 1 else ""


def full_value(text: str) -> str:
    """The whole text behind the first colon: what the file says, whatever the script makes of it."""
    return text.partition(":")[2]


def split_list(value: str, separator: str = "|") -> list[str]:
    """The alternatives of a value. An empty text has none; a trailing separator adds none (as bash splits)."""
    items = value.split(separator)
    while items and items[-1] == "":
        items.pop()
    return items


def mode_entries(value: str) -> dict[str, str]:
    """The entries of a mode table `mode=value|mode=value`; alternatives without `=` are left out.

    Only the first two fields between `=` count, and of equal modes the first.
    """
    entries: dict[str, str] = {}
    for alternative in split_list(value):
        fields = alternative.split("=")
        if len(fields) > 1:
            entries.setdefault(fields[0], fields[1])
    return entries


def is_null(value: str) -> bool:
    """Whether a value suppresses its argument: `null`, nothing, or one blank."""
    return value in ("null", "", " ")


def argument(key: str, value: str, *, joint: str = "=") -> str:
    """`key=value`, or one blank where key or value say that there is none."""
    if key == "null" or is_null(value):
        return " "
    return f"{key}{joint}{value}"
