"""Helper functions by which every suite's script parses lines."""

import re
from typing import Literal

Split = Literal["first", "rest"]

# A script, model or key with one of these values is absent: nothing runs. (Arguments have a separate rule,
# `is_null`.)
NOTHING = ("null", "")
# Number formats of precisions. Other words are the suite's own, such as True or trt_fp16.
FORMATS = ("fp32", "fp16", "bf16", "int8", "fp64", "fp8", "int4")
_FORMAT = re.compile(r"(?:fp|bf|int)\d+")
_HOST = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.:%\]-]*")


def is_unknown_format(word: str) -> bool:
    """Whether a precision names a number format that does not exist, such as fp61."""
    return bool(_FORMAT.fullmatch(word)) and word not in FORMATS


def split_line(text: str, split: Split) -> tuple[str, str]:
    """Return key and value of a line.

    `first`: fields 0 and 1 of the text split at every colon, so a value ends at its own first colon.
    `rest`: split at the first colon only; a line without a colon is both key and value (PaddleDetection).
    """
    if split == "rest":
        key, colon, value = text.partition(":")
        return (key, value) if colon else (text, text)
    fields = text.split(":")
    return fields[0], fields[1] if len(fields) > 1 else ""


def full_value(text: str) -> str:
    """Return the whole text after the first colon, independent of the script's truncation."""
    return text.partition(":")[2]


def split_list(value: str, separator: str = "|") -> list[str]:
    """Return the alternatives of a value. Like in bash, an empty text and a trailing separator add none."""
    items = value.split(separator)
    while items and items[-1] == "":
        items.pop()
    return items


def mode_entries(value: str) -> dict[str, str]:
    """Return the entries of a mode table `mode=value|mode=value`; alternatives without `=` are ignored.

    Only the first two fields between `=` are used, and the first of duplicate modes.
    """
    entries: dict[str, str] = {}
    for alternative in split_list(value):
        fields = alternative.split("=")
        if len(fields) > 1:
            entries.setdefault(fields[0], fields[1])
    return entries


def is_number(text: str) -> bool:
    """Whether a text consists of ASCII digits."""
    return text.isascii() and text.isdecimal()


def is_id(text: str) -> bool:
    """Whether a text is a device id: a decimal number without leading zeros."""
    return len(text) < 10 and is_number(text) and text == str(int(text))


def is_host(text: str) -> bool:
    """Whether a text has the form of an address or host name; a number alone is a device id."""
    return bool(_HOST.fullmatch(text)) and not is_number(text)


def is_null(value: str) -> bool:
    """Whether a value suppresses its argument: `null`, empty, or one space."""
    return value in ("null", "", " ")


def argument(key: str, value: str, *, joint: str = "=") -> str:
    """Return `key=value`, or one space if key or value is null."""
    if key == "null" or is_null(value):
        return " "
    return f"{key}{joint}{value}"
