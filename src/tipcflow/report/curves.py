"""Loss curves thinned for a screen: as many points as it can show, and every extreme kept."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

# More points than a screen has columns cannot be told apart.
MOST = 2000
Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """One rank's losses. `x` counts the logged samples from 0; `broken` are the x where the value is nan or inf.

    `total` is the number of samples before thinning.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    broken: tuple[float, ...]
    total: int


def curve(name: str, values: Sequence[float], *, most: int = MOST) -> Curve:
    """A curve of at most about `most` points; nan and inf are gaps in it, and are listed."""
    finite = [(float(x), y) for x, y in enumerate(values) if math.isfinite(y)]
    broken = [float(x) for x, y in enumerate(values) if not math.isfinite(y)]
    kept: list[tuple[float, float | None]] = list(_thin(finite, most))
    kept += [(x, None) for x in broken[:most]]
    kept.sort(key=lambda point: point[0])
    return Curve(name, tuple(x for x, _ in kept), tuple(y for _, y in kept), tuple(broken[:most]), len(values))


def _thin(points: list[Point], most: int) -> list[Point]:
    """First, last, and the least and largest of each of `most / 2` equal pieces, in their order."""
    if len(points) <= most:
        return points
    pieces = max(1, most // 2 - 1)
    size = len(points) / pieces
    kept = {points[0], points[-1]}
    for number in range(pieces):
        piece = points[int(number * size) : int((number + 1) * size)]
        kept |= {min(piece, key=lambda point: point[1]), max(piece, key=lambda point: point[1])}
    return sorted(kept)
