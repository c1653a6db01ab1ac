"""Did many metrics of one node move together in one run? Then it was the node, not the model."""

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

Place = tuple[str, str]


def moved_together(series: Sequence[Series]) -> frozenset[Place]:
    """The (run, node) in which most metrics moved to the same side, judged by what was known at that time.

    Series that share run ids are metrics of the same runs. Where the run before, on another node, had moved as
    well, it is not the node; and after `_RUNS` such runs in a row it is a change, wherever it comes from.
    """
    shared = _shared(series)
    if not shared:
        return frozenset()
    moves: dict[Place, list[float]] = defaultdict(list)
    for one in series:
        if any(point.run in shared for point in one.points):
            for place, off in _deviations(one):
                moves[place].append(off)
    return _of_nodes([(place, one_sided(offs)) for place, offs in moves.items()])


def one_sided(offs: Sequence[float]) -> bool:
    """Whether most of the metrics, and at least three, moved far to the same side; worse is positive."""
    if len(offs) < _METRICS:
        return False
    needed = max(_METRICS, _SHARE * len(offs))
    return sum(off > _MOVED for off in offs) >= needed or sum(off < -_MOVED for off in offs) >= needed


def _shared(series: Iterable[Series]) -> frozenset[str]:
    """Runs that at least `_METRICS` series have."""
    having: dict[str, int] = defaultdict(int)
    for one in series:
        for run in {point.run for point in one.points}:
            having[run] += 1
    return frozenset(run for run, count in having.items() if count >= _METRICS)


def _deviations(series: Series) -> Iterable[tuple[Place, float]]:
    """How far each run was from those before, in robust standard deviations; worse is positive."""
    worse = -1.0 if series.higher_is_better else 1.0
    order: list[float] = []
    kept: list[float] = []
    for point in series.points:
        if point.value is None:
            continue
        count = len(order)
        if count >= _HISTORY:
            middle = order[count // 2]
            spread = (order[count * 3 // 4] - order[count // 4]) / _QUARTILES
            yield (point.run, point.node), worse * (point.value - middle) / max(spread, 2e-3 * abs(middle), TINY)
        kept.append(point.value)
        insort(order, point.value)
        if len(kept) > _WINDOW:
            del order[bisect_left(order, kept.pop(0))]


def _of_nodes(places: Iterable[tuple[Place, bool]]) -> frozenset[Place]:
    found: set[Place] = set()
    row: list[Place] = []
    for place, moved in places:
        row = [*row, place] if moved else []
        same_node = len({node for _, node in row}) == 1
        if row and same_node and len(row) <= _RUNS:
            found.add(place)
    return frozenset(found)
