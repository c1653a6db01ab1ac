"""Runs that become worse steadily: their spread is a trend, not noise."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from math import factorial
from statistics import median

# Probability of an order at least as monotone among runs that differ by noise alone.
_SIGNIFICANT = 0.01
# A trend shows in this many runs.
_MOST = 60


def without_trend(runs: Sequence[float], *, higher_is_better: bool) -> tuple[float, ...]:
    """Return the last 60 runs without their trend for the worse; unchanged if they have none.

    The trend is significant by Kendall's rank correlation (one-sided, 1 %); its slope is the median of the slopes
    between all pairs of runs (Theil and Sen). The last run keeps its value.
    """
    runs = runs[-_MOST:]
    sign = -1 if higher_is_better else 1
    pairs = [(first, later) for later in range(len(runs)) for first in range(later)]
    rising = sum(
        1 if sign * (runs[later] - runs[first]) > 0 else -1 if sign * (runs[later] - runs[first]) < 0 else 0
        for first, later in pairs
    )
    falls = (len(pairs) - rising) // 2
    if rising <= 0 or _orders(len(runs))[falls] > _SIGNIFICANT:
        return tuple(runs)
    slope = median((runs[later] - runs[first]) / (later - first) for first, later in pairs)
    return tuple(run + slope * (len(runs) - 1 - index) for index, run in enumerate(runs))


@lru_cache(maxsize=64)
def _orders(runs: int) -> tuple[float, ...]:
    """Return, for each number of inversions, the share of this many runs' orders with at most as many."""
    counts = [1]
    for size in range(2, runs + 1):
        sums = [0, *accumulate(counts)]
        last = len(counts)
        counts = [sums[min(at + 1, last)] - sums[max(0, at + 1 - size)] for at in range(last + size - 1)]
    return tuple(count / factorial(runs) for count in accumulate(counts))
