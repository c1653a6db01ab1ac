"""Loss curves downsampled for a screen; extremes are preserved."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

# A screen cannot show more points than it has columns.
MOST = 2000
Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """One rank's losses. `x` counts logged samples from 0; `broken` lists the x of nan and inf values.

    `total` is the number of samples before downsampling.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    broken: tuple[float, ...]
    total: int


def curve(name: str, values: Sequence[float], *, most: int = MOST) -> Curve:
    """A curve of about `most` points at most; nan and inf values are gaps, listed in `broken`."""
    finite = [(float(x), y) for x, y in enumerate(values) if math.isfinite(y)]
    broken = [float(x) for x, y in enumerate(values) if not math.isfinite(y)]
    kept: list[tuple[float, float | None]] = list(_thin(finite, most))
    kept += [(x, None) for x in broken[:most]]
    kept.sort(key=lambda point: point[0])
    return Curve(name, tuple(x for x, _ in kept), tuple(y for _, y in kept), tuple(broken[:most]), len(values))


def _thin(points: list[Point], most: int) -> list[Point]:
    """The first and last point, and minimum and maximum of each of `most / 2` equal pieces, in order."""
    if len(points) <= most:
        return points
    pieces = max(1, most // 2 - 1)
    size = len(points) / pieces
    kept = {points[0], points[-1]}
    for number in range(pieces):
        piece = points[int(number * size) : int((number + 1) * size)]
        kept |= {min(piece, key=lambda point: point[1]), max(piece, key=lambda point: point[1])}
    return sorted(kept)


def counted_iterations(places: Sequence[tuple[int, int]]) -> tuple[float, ...]:
    """Return the iteration of each logged sample, counted over epochs; empty if the log has none.

    Suites count iterations from the start of each epoch, and logs do not contain how many an epoch has: an epoch
    that ends between two logged iterations is taken to end one logging interval after its last logged one.

    Args:
        places: (epoch, iteration) as logged; negative where it was not logged.
    """
    if not places or any(iteration < 0 for _, iteration in places):
        return ()
    counted: list[float] = []
    done, interval, before = 0, 1, places[0]
    for epoch, iteration in places:
        if iteration < before[1] or (iteration == before[1] and epoch > before[0]):
            done += before[1] + interval - min(iteration, interval)
        elif iteration > before[1]:
            interval = iteration - before[1]
        counted.append(float(done + iteration))
        before = (epoch, iteration)
    return tuple(counted) if counted[-1] > counted[0] else ()
