"""Joint movements: many metrics of one node that move together in one run indicate the node, not the model."""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Sequence

from tipcflow.check.detect.noise import TINY
from tipcflow.check.detect.series import Series

# Metrics that there must be, the share of them that must have moved the same way, and how far (in sigmas).
_METRICS, _SHARE, _MOVED = 3, 0.6, 2.0
_HISTORY, _WINDOW = 8, 40
_QUARTILES = 1.349
# A node that is slow for longer than this has another level.
_RUNS = 3

# Run, node, and which of the points with this run's id it is: usually the first and only one.
Place = tuple[str, str, int]


def moved_together(series: Sequence[Series]) -> list[frozenset[int]]:
    """Of each series, the points at which most metrics of that run on that node moved to the same side.

    Judged by what was known at that time, from the metrics of the same runs alone: series that share run IDs.
    If the previous run, on another node, had moved, too, the node is not the cause. After `_RUNS` such runs in a
    row it is a change, whatever its cause.
    """
    nowhere: frozenset[int] = frozenset()
    shared = _shared(series)
    if not shared:
        return [nowhere] * len(series)
    moves: dict[Place, list[float]] = defaultdict(list)
    for metric_series in series:
        if any(point.run in shared for point in metric_series.points):
            for place, off in _deviations(metric_series):
                moves[place].append(off)
    moved = frozenset(place for place, offs in moves.items() if one_sided(offs))
    return [_of_nodes(metric_series, moved) if moved else nowhere for metric_series in series]


def one_sided(offs: Sequence[float]) -> bool:
    """Whether most of the metrics, and at least three, moved far to the same side; worse is positive."""
    if len(offs) < _METRICS:
        return False
    needed = max(_METRICS, _SHARE * len(offs))
    return sum(off > _MOVED for off in offs) >= needed or sum(off < -_MOVED for off in offs) >= needed


def _shared(series: Iterable[Series]) -> frozenset[str]:
    """Runs that at least `_METRICS` series have; those without a name are not the same run."""
    having: dict[str, int] = defaultdict(int)
    for metric_series in series:
        for run in {point.run for point in metric_series.points}:
            having[run] += 1
    return frozenset(run for run, count in having.items() if count >= _METRICS and run)


def _places(series: Series) -> list[Place]:
    runs = [point.run for point in series.points]
    if len(set(runs)) == len(runs):
        return [(point.run, point.node, 0) for point in series.points]
    count: dict[str, int] = defaultdict(int)
    places = []
    for point in series.points:
        places.append((point.run, point.node, count[point.run]))
        count[point.run] += 1
    return places


def _deviations(series: Series) -> Iterable[tuple[Place, float]]:
    """How far each run was from those before, in robust standard deviations; worse is positive."""
    worse = -1.0 if series.higher_is_better else 1.0
    order: list[float] = []
    window: list[float] = []
    for place, point in zip(_places(series), series.points, strict=True):
        if point.value is None:
            continue
        count = len(order)
        if count >= _HISTORY and point.run:
            middle = order[count // 2]
            spread = (order[count * 3 // 4] - order[count // 4]) / _QUARTILES
            yield place, worse * (point.value - middle) / max(spread, 2e-3 * abs(middle), TINY)
        window.append(point.value)
        insort(order, point.value)
        if len(window) > _WINDOW:
            del order[bisect_left(order, window.pop(0))]


def _of_nodes(series: Series, moved: frozenset[Place]) -> frozenset[int]:
    """Return the indices of the points at which the node caused the deviation."""
    indices: set[int] = set()
    row: list[str] = []
    for index, (place, point) in enumerate(zip(_places(series), series.points, strict=True)):
        if point.value is None:
            continue
        row = [*row, point.node] if place in moved else []
        if row and len(set(row)) == 1 and len(row) <= _RUNS:
            indices.add(index)
    return frozenset(indices)
