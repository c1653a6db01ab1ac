"""Validation of cron expressions: minute, hour, day of month, month, day of week."""

import re

from tipcflow.domain import ConfigError

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# Name, smallest and largest value, names of the values from the smallest on. Sunday is 0 and 7.
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
_PART = re.compile(r"(?P<first>\*|\w+)(?:-(?P<last>\w+))?(?:/(?P<step>\d+))?")


def checked_cron(text: str, *, key: str) -> str:
    """The expression with single spaces between its five fields.

    Args:
        key: name of the setting, for the error.

    Raises:
        ConfigError: not an expression of five fields (`*`, numbers, names, ranges, steps, lists).
    """
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise _wrong(key, text, f"has {len(fields)} fields")
    for field, (name, low, high, names) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            if not _fits(part, low, high, names):
                raise _wrong(key, text, f"{part!r} is no {name} ({low} to {high})")
    return " ".join(fields)


def _fits(part: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    match = _PART.fullmatch(part)
    if match is None or match["step"] == "0" or (match["step"] and int(match["step"]) > high):
        return False
    if match["first"] == "*":
        return match["last"] is None
    first = _value(match["first"], low, names)
    last = first if match["last"] is None else _value(match["last"], low, names)
    # `30/5` (a start and a step) is not portable between cron implementations.
    if match["step"] and match["last"] is None:
        return False
    return first is not None and last is not None and low <= first <= last <= high


def _value(word: str, low: int, names: tuple[str, ...]) -> int | None:
    if word.isascii() and word.isdigit():
        return int(word)
    return low + names.index(word.lower()) if word.lower() in names else None


def _wrong(key: str, text: str, why: str) -> ConfigError:
    return ConfigError(
        f"is no cron expression: {why}",
        key=key,
        found=text,
        expected="minute, hour, day of the month, month, day of the week, for example '0 20 * * 6'",
    )
