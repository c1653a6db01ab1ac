"""Template filters for times, sizes and texts."""

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from tipcflow.domain import Status
from tipcflow.parse import strip_ansi

_CUT = 4000


def word(status: Status | str | None) -> str:
    """Return the status word; `running` without a status."""
    return "running" if status is None else str(status)


def when(epoch: float | None) -> str:
    """A time in UTC to the second, '' for none and for what is no time."""
    return iso(epoch)[:19].replace("T", " ") if epoch is not None else ""


def iso(epoch: float) -> str:
    """The same for a machine."""
    try:
        return datetime.fromtimestamp(epoch, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return ""


def took(seconds: float | None) -> str:
    """A duration: `3.2 s`, `4:07`, `1:02:33`, `3 d 4 h`; '' for none."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    seconds = max(0.0, seconds)
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}"
    hours, minutes = divmod(minutes, 60)
    return f"{hours // 24} d {hours % 24} h" if hours >= 48 else f"{hours}:{minutes:02}:{rest:02}"


def clock(seconds: float) -> str:
    """A mark of a time axis, in whole seconds: `0`, `30 s`, `2:00`."""
    if seconds < 1:
        return "0"
    return f"{seconds:.0f} s" if seconds < 60 else took(seconds)


def size(count: float) -> str:
    """A number of bytes."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def text(value: object, most: int = _CUT) -> str:
    """Return any text without control characters, truncated to `most` characters."""
    plain = "".join(sign if sign.isprintable() or sign in "\n\t" else " " for sign in strip_ansi(str(value)))
    return plain if len(plain) <= most else f"{plain[:most]} … ({len(plain) - most} more characters)"


def number(value: object) -> str:
    """A value of a check's evidence: numbers short, anything else as text."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {number(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(number, value))
    return text(value, 1000)


def breakable(value: object) -> Markup:
    """Return a long name that may wrap after each `/` and `_`."""
    return Markup("<wbr>").join(re.findall(r"[^/_]*[/_]|[^/_]+", text(value, 300)))


def digest(html: str) -> str:
    """Return a short hash of a part of a page."""
    return hashlib.sha256(html.encode("utf-8", "backslashreplace")).hexdigest()[:12]


FILTERS: dict[str, Callable[..., Any]] = {
    "word": word,
    "when": when,
    "iso": iso,
    "took": took,
    "clock": clock,
    "size": size,
    "plain": text,
    "number": number,
    "digest": digest,
    "breaks": breakable,
}
