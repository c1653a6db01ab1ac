"""Durations, times and sizes."""

import math
from datetime import UTC, datetime

_HOURS_BEFORE_DAYS = 48


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


def utc(epoch: float | None) -> str:
    """A time in UTC as `2026-11-21 09:30:00`; '' for None and for values that are not a time."""
    return iso(epoch)[:19].replace("T", " ") if epoch is not None else ""


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


def milliseconds(latency: float | None) -> str:
    """A latency in milliseconds, without its unit: `12.34`; '' for None."""
    return "" if latency is None else f"{latency:.2f}"
