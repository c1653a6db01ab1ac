"""Distribution of the runs of a level: kernels around the runs, with a heavy-tailed curve as prior."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

# Student's t with 5 degrees of freedom, scaled to the standard deviation of the runs: the prior, in runs.
_PRIOR_RUNS, _FREEDOM = 12.0, 5.0
_PEAK = 0.3796
# Half width of a kernel (Epanechnikov), in standard deviations.
_WIDTH = 1.1
_HEIGHT = 0.75 / _WIDTH
# Density at any distance: outliers that no earlier run resembles.
_ANYWHERE = 0.0005


class Density:
    """Probability density of a run's deviation from the level, in standard deviations.

    Runs that form two groups, or are often far off, have density where they were: another run there is no evidence
    of a change.
    """

    def __init__(self, deviations: Sequence[float]) -> None:
        ordered = sorted(deviations)
        self._ordered = ordered
        self._sums = [0.0, *accumulate(ordered)]
        self._squares = [0.0, *accumulate([value * value for value in ordered])]
        self._whole = 1 / (_PRIOR_RUNS + len(ordered))

    def log(self, at: float) -> float:
        """The logarithm of the density."""
        ordered, sums, squares = self._ordered, self._sums, self._squares
        first, last = bisect_left(ordered, at - _WIDTH), bisect_right(ordered, at + _WIDTH)
        near = 0.0
        if last > first:
            count = last - first
            off = count * at * at - 2 * at * (sums[last] - sums[first]) + squares[last] - squares[first]
            near = max(0.0, count - off / (_WIDTH * _WIDTH)) * _HEIGHT
        tail = 1 + at * at / _FREEDOM
        return math.log((_PRIOR_RUNS * _PEAK / (tail * tail * tail) + near) * self._whole + _ANYWHERE)
