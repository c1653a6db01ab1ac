"""By how much the loss of a training falls, compared with accepted runs of the same chain."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite, sqrt
from statistics import mean, median, stdev

from tipcflow.check.context import CheckContext
from tipcflow.domain.numbers.units import percentage

# An honest run is further below the mean of its predecessors in less than one of 10,000 cases.
_SPREADS = 4.0
# The spread of few runs may be small by chance: share of the loss.
_LEAST_SPREAD = 0.005
# Fewer points do not determine their noise.
_FOR_NOISE = 8
# Parts of a curve whose medians show noise that lasts for several iterations.
_PARTS = 8
# A fall in less than one of 700 curves is larger than estimated by this many standard deviations.
_SURE = 3.0


@dataclass(frozen=True)
class UsualFall:
    """Falls of a loss in accepted runs, as shares of the loss at the start.

    `spread` is the standard deviation: the noise of the seed.
    """

    runs: int
    mean: float
    spread: float

    def is_below(self, share: float) -> bool:
        """Whether a fall of `share` is less than noise explains."""
        return share < self.mean - _SPREADS * self.spread

    def __str__(self) -> str:
        return f"{self.runs} earlier runs fell by {percentage(self.mean, 2)} ± {percentage(self.spread, 2)}"


def fall_of(curve: Sequence[float]) -> float:
    """Return the fall between the medians of the first and last quarter, as a share; negative for a rise."""
    quarter = max(1, len(curve) // 4)
    first, last = median(curve[:quarter]), median(curve[-quarter:])
    return (first - last) / abs(first) if first else 0.0


def noise_of(curve: Sequence[float]) -> float:
    """Return the standard deviation of `fall_of` that the differences of successive points explain."""
    quarter = max(1, len(curve) // 4)
    start = abs(median(curve[:quarter]))
    if len(curve) < _FOR_NOISE or not start:
        return 0.0
    steps = [abs(later - earlier) for earlier, later in pairwise(curve)]
    # Median of absolute differences -> standard deviation of a point; then that of a difference of medians.
    point = median(steps) / 0.9539
    return 1.2533 * point * sqrt(2 / quarter) / start


def largest_fall(curve: Sequence[float]) -> float:
    """Return the largest fall that the noise of at least 16 points leaves possible, as a share; infinite if the
    loss starts at 0.

    The noise is the larger of two estimates: that of single points, and that of the medians of eighths of the
    curve, which also contains noise of several iterations (printed means of a window, losses of a few batches).
    """
    edges = [len(curve) * part // _PARTS for part in range(_PARTS + 1)]
    parts = [median(curve[start:end]) for start, end in pairwise(edges)]
    first = median(curve[: max(1, len(curve) // 4)])
    if not first:
        return inf
    # Medians of quarters are means of two eighths: their difference has the standard deviation of one eighth.
    slow = stdev(later - earlier for earlier, later in pairwise(parts)) / sqrt(2) / abs(first)
    return fall_of(curve) + _SURE * max(slow, noise_of(curve))


def usual_fall(context: CheckContext, step: str, name: str, length: int) -> UsualFall | None:
    """Return the falls of one loss in accepted runs with as many iterations; None for too few runs."""
    falls, noises = [], [_LEAST_SPREAD]
    wanted = step, "" if name == "loss" else name
    for past in context.history[-context.policy.history :]:
        curves = [losses for key, losses in past.losses.items() if (key.step, key.curve.metric) == wanted]
        if curves and all(len(losses) == length for losses in curves):
            curve = [median(values) for values in zip(*curves, strict=True)]
            fall = fall_of(curve)
            if isfinite(fall):  # a first loss near 0 has no fall that can be compared
                falls.append(fall)
                noises.append(noise_of(curve))
    if len(falls) < max(2, context.policy.min_history):
        return None
    return UsualFall(len(falls), mean(falls), max(stdev(falls), *noises))
