"""Selects the throughput values to use: finite, of the requested batch size, each repeat once."""

import math
from collections.abc import Iterable, Sequence

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
    kept = [one for one in speeds if _is_speed(one)]
    bad = dict.fromkeys(f"{_what(one)}: left out, {one.speed} is no speed" for one in speeds if not _is_speed(one))
    notes += _listed(bad)
    told = sorted({one.batch for one in kept} - {0, batch})
    sizes = ", ".join(map(str, told))
    if told and any(one.batch == batch for one in kept):
        others = {one.source for one in kept if one.batch in told}
        kept = [one for one in kept if one.batch not in told]
        files = "1 file" if len(others) == 1 else f"{len(others)} files"
        notes.append(f"{files} of another batch size per device ({sizes}) left out")
    elif told:
        notes.append(f"the names tell a batch size per device of {sizes}; {batch} was given")
    return kept, [*notes, *_listed(_clashes(kept))]


def short(speeds: Sequence[Speed], take: int) -> list[str]:
    """Return messages about logs that ended before the end of the window of counted iterations."""
    return _listed(
        f"{one.source}: only {one.iterations} of {take} iterations" for one in speeds if 0 < one.iterations < take
    )


def _clashes(speeds: Sequence[Speed]) -> list[str]:
    """Return messages about repeats with conflicting throughput. DLPerf prints each repeat several times; equal
    values are not reported."""
    repeats: dict[tuple[str, str, str, int], dict[float, None]] = {}
    for one in speeds:
        key = (one.model, one.precision, one.topology.name, one.repeat)
        values = repeats.setdefault(key, {})
        value = round(one.speed, PLACES)
        values.pop(value, None)
        values[value] = None
    return [
        f"{' '.join(filter(None, names))}: repeat {repeat} came as {', '.join(map(str, values))}; the last counts"
        for (*names, repeat), values in repeats.items()
        if len(values) > 1
    ]


def _is_speed(one: Speed) -> bool:
    return math.isfinite(one.speed) and one.speed > 0


def _what(one: Speed) -> str:
    return f"{one.source or one.model} repeat {one.repeat}"


def _listed(notes: Iterable[str]) -> list[str]:
    several = list(notes)
    rest = len(several) - _LISTED
    return several if rest <= 1 else [*several[:_LISTED], f"and {rest} more like that"]
