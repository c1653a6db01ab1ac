"""Durations, times, sizes, counts and changes as text: every package formats them with these functions."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime

_HOURS_BEFORE_DAYS = 48
_S_BEFORE_MINUTES, _MINUTES_BEFORE_HOURS = 600, 600
_DAY_S = 86400


def duration(seconds: float | None) -> str:
    """A measured duration: `3.2 s`, `4:07`, `1:02:33`, `3 d 4 h`; '' for None, nan and inf."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    seconds = max(0.0, seconds)
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}"
    hours, minutes = divmod(minutes, 60)
    if hours < _HOURS_BEFORE_DAYS:
        return f"{hours}:{minutes:02}:{rest:02}"
    return f"{hours // 24} d {hours % 24} h"


def clock(seconds: float) -> str:
    """A duration in whole seconds, for time axes and running clocks: `0`, `30 s`, `2:00`."""
    if seconds < 1:
        return "0"
    return f"{seconds:.0f} s" if seconds < 59.5 else duration(max(60.0, seconds))


def limit(seconds: float) -> str:
    """A configured limit or a rounded wait for a sentence: `90 s`, `20 min`, `24 h`, `3 days`."""
    if seconds < _S_BEFORE_MINUTES:
        return f"{seconds:.3g} s"
    if seconds < 60 * _MINUTES_BEFORE_HOURS:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.3g} h" if seconds < 2 * _DAY_S else f"{seconds / _DAY_S:.0f} days"


def rough(seconds: float) -> str:
    """A measured or remaining wait for a sentence, in whole seconds or more: `45 s`, `20 min`."""
    return limit(round(seconds))


def minutes(seconds: float) -> str:
    """A predicted or measured duration in minutes, without its unit: `12.3`."""
    return f"{seconds / 60:.1f}"


def expected_wait(seconds: float) -> str:
    """A predicted wait in minutes, so that a text with it changes at most once a minute: `1 min`, `90 min`."""
    return f"{max(1, round(seconds / 60))} min"


def clock_offset(seconds: float) -> str:
    """The difference of a clock for a sentence, in whole seconds: `45 s ahead`, `20 min behind`."""
    return f"{rough(abs(seconds))} {'behind' if seconds < 0 else 'ahead'}"


def offset(seconds: float) -> str:
    """The difference between two clocks, with its sign: `+0.3 s`, `-1:02`."""
    return f"{'-' if seconds < 0 else '+'}{duration(abs(seconds))}"


def utc(epoch: float | None) -> str:
    """A time in UTC as `2026-11-21 09:30:00`; '' for None and for values that are not a time."""
    return iso(epoch)[:19].replace("T", " ") if epoch is not None else ""


def utc_minute(epoch: float) -> str:
    """A time to the minute, with its zone: `2026-12-01 00:00 UTC`; '' for values that are not a time."""
    text = utc(epoch)[:16]
    return f"{text} UTC" if text else ""


def iso(epoch: float) -> str:
    """A time in UTC by ISO 8601, to the second; '' for values that are not a time."""
    try:
        return datetime.fromtimestamp(epoch, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return ""


def size(count: float) -> str:
    """A number of bytes: `17 B`, `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def counted(number: int, noun: str) -> str:
    """A number of things: `1 chain`, `3 chains`."""
    return f"{number} {plural(number, noun)}"


def plural(number: float, noun: str) -> str:
    """The noun in its form for that number of things: `chain` for 1, otherwise `chains`."""
    return noun if number == 1 else f"{noun}s"


def first_names(names: Sequence[object], limit: int = 3) -> str:
    """The first few names, and the number of the others: `a, b, c and 2 more`."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(map(str, names[:limit])) + more


def finite(value: float | None) -> float | None:
    """The value; None for nan and inf, which JSON and charts do not have."""
    return value if value is not None and math.isfinite(value) else None


def milliseconds(latency: float | None) -> str:
    """A latency in milliseconds, without its unit: `12.34`; '' for None."""
    return "" if latency is None else f"{latency:.2f}"


def percentage(share: float, digits: int = 1) -> str:
    """A share of a whole in percent: 0.031 is `3.1 %`."""
    return f"{100 * share:.{digits}f} %"


def percent(change: float | None) -> str:
    """A relative change: `+3.1 %`; '' for None."""
    if change is None:
        return ""
    digits = 0 if abs(change) >= 1 else 1 if abs(change) >= 0.001 or not change else 3
    return f"{100 * change:+.{digits}f} %" if change else "0 %"


def percent_change(ratio: float | None) -> float | None:
    """The change of a value in percent of the baseline, from value / baseline; None if unknown."""
    return None if ratio is None else 100 * (ratio - 1)
