"""Template filters for times, sizes and texts."""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup

from tipcflow.domain import Status
from tipcflow.domain.numbers.units import clock, counted, duration, iso, milliseconds, plural, size, utc
from tipcflow.parse import strip_ansi

_CUT = 4000
_EMPTY: tuple[object, ...] = ("", None, [], (), {})


def word(status: Status | str | None) -> str:
    """Return the status word; `running` without a status."""
    return "running" if status is None else str(status)


def text(value: object, most: int = _CUT) -> str:
    """Return any text without control characters, truncated to `most` characters."""
    plain = strip_ansi(str(value))
    if not plain.isprintable():
        plain = "".join(sign if sign.isprintable() or sign in "\n\t" else " " for sign in plain)
    return plain if len(plain) <= most else f"{plain[:most]} … ({len(plain) - most} more characters)"


def number(value: object) -> str:
    """A value of a check's evidence: short numbers, names with non-empty values, text otherwise."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(_named(key, item) for key, item in value.items() if item not in _EMPTY)
    if isinstance(value, list | tuple):
        return ", ".join(map(number, value))
    return text(value, 1000)


def _named(key: object, value: object) -> str:
    inner = number(value)
    return f"{text(key, 100)} ({inner})" if isinstance(value, Mapping) else f"{text(key, 100)} {inner}"


def breakable(value: object) -> Markup:
    """Return a long name that may wrap after each `/` and `_`."""
    return Markup("<wbr>").join(re.findall(r"[^/_]*[/_]|[^/_]+", text(value, 300)))


def digest(html: str) -> str:
    """Return a short hash of a part of a page."""
    return hashlib.sha256(html.encode("utf-8", "backslashreplace")).hexdigest()[:12]


FILTERS: dict[str, Callable[..., Any]] = {
    "word": word,
    "when": utc,
    "iso": iso,
    "took": duration,
    "clock": clock,
    "ms": milliseconds,
    "size": size,
    "counted": counted,
    "plural": plural,
    "plain": text,
    "number": number,
    "digest": digest,
    "breaks": breakable,
}
