"""Selects the throughput values to use: finite, of the requested batch size, each repeat once."""

import math
from collections.abc import Iterable, Sequence

from tipcflow.domain.numbers.units import counted
from tipcflow.parse.scaling.scaling import PLACES, Speed

# Further items of the same kind are counted instead of listed.
_LISTED = 5


def chosen(speeds: Sequence[Speed], batch: int) -> tuple[list[Speed], list[str]]:
    """Return (values to use, messages about ignored values).

    Values whose name states a batch size per device other than `batch` are excluded; if no name states
    `batch`, the names may be wrong and all values are kept. nan, inf and 0 are excluded because one such
    value would distort average and median.
    """
    notes: list[str] = []
    used = [speed for speed in speeds if _is_speed(speed)]
    bad = dict.fromkeys(
        f"{_what(speed)}: skipped: invalid speed {speed.speed}" for speed in speeds if not _is_speed(speed)
    )
    notes += _listed(bad)
    batches = sorted({speed.batch for speed in used} - {0, batch})
    sizes = ", ".join(map(str, batches))
    if batches and any(speed.batch == batch for speed in used):
        others = {speed.source for speed in used if speed.batch in batches}
        used = [speed for speed in used if speed.batch not in batches]
        notes.append(f"{counted(len(others), 'file')} of another batch size per device ({sizes}) skipped")
    elif batches:
        notes.append(f"file names give a batch size per device of {sizes}; {batch} was given")
    return used, [*notes, *_listed(_clashes(used))]


def short_log_messages(speeds: Sequence[Speed], take: int) -> list[str]:
    """Return messages about logs that ended before the end of the window of counted iterations."""
    return _listed(
        f"{speed.source}: only {speed.iterations} of {take} iterations"
        for speed in speeds
        if 0 < speed.iterations < take
    )


def _clashes(speeds: Sequence[Speed]) -> list[str]:
    """Return messages about repeats with conflicting throughput. DLPerf prints each repeat several times; equal
    values are not reported."""
    repeats: dict[tuple[str, str, str, int], dict[float, None]] = {}
    for speed in speeds:
        key = (speed.model, speed.precision, speed.topology.name, speed.repeat)
        values = repeats.setdefault(key, {})
        value = round(speed.speed, PLACES)
        values.pop(value, None)
        values[value] = None
    return [
        f"{' '.join(filter(None, names))}: repeat {repeat} came as {', '.join(map(str, values))}; the last counts"
        for (*names, repeat), values in repeats.items()
        if len(values) > 1
    ]


def _is_speed(speed: Speed) -> bool:
    return math.isfinite(speed.speed) and speed.speed > 0


def _what(speed: Speed) -> str:
    return f"{speed.source or speed.model} repeat {speed.repeat}"


def _listed(notes: Iterable[str]) -> list[str]:
    several = list(notes)
    rest = len(several) - _LISTED
    return several if rest <= 1 else [*several[:_LISTED], f"and {rest} more"]
