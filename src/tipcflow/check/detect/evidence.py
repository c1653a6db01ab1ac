"""Evidence of a shift: the best split of a history into two levels, and its score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from operator import sub

from tipcflow.check.detect.density import Density
from tipcflow.check.detect.noise import TINY, Noise, Prior, clipped, learn, middle_of
from tipcflow.domain.numbers.spread import MAD_TO_SIGMA

_SPLIT_CLIP = 3.0
# Deviations beyond this, in standard deviations, are equally far.
_FAR = 1e6
# Upper bound of a relative change: JSON has no infinity.
_LARGEST = 1e9
# Median of |difference of two neighbors| -> standard deviation of one.
_DIFFERENCE_TO_SIGMA = MAD_TO_SIGMA / math.sqrt(2)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The best split of a history into an old level and a new one.

    Attributes:
        new: how many observations at the end belong to the new level.
        noise: level and noise of those before.
        shift: new level - old level, in the series' unit.
        score: equivalent number of standard deviations of normal noise; 0 if drift explains the shift.
    """

    new: int
    noise: Noise
    shift: float
    score: float

    @property
    def size(self) -> float:
        """The relative change; from a level of 0 every change is the whole."""
        level = abs(self.noise.level)
        size = self.shift / level if level > 0 else math.copysign(1.0, self.shift)
        return max(-_LARGEST, min(_LARGEST, size))


def best_split(values: Sequence[float], middle: float, span: int, least: int) -> int:
    """The number of values at the end that differ most from those before.

    Each value counts up to `_SPLIT_CLIP` standard deviations from the middle, so that one outlier splits nothing.

    Args:
        middle: the median of all values.
        span: maximum number of values at the end.
        least: minimum number of values before them.
    """
    count = len(values)
    steps = sorted(map(abs, map(sub, values, islice(values, 1, None))))
    limit = _SPLIT_CLIP * max(_DIFFERENCE_TO_SIGMA * middle_of(steps), 1e-3 * abs(middle), TINY)
    near = clipped(values, middle - limit, middle + limit)
    mean = sum(near) / count
    best, chosen, end = -1.0, 1, 0.0
    for new, value in enumerate(near[: -1 - min(span, count - least) : -1], 1):
        # The sum of deviations from the common mean, squared, in units of its variance but for a common factor.
        end += value - mean
        score = end * end / (new * (count - new))
        if score > best:
            best, chosen = score, new
    return chosen


def weigh(before: Sequence[float], after: Sequence[float], prior: Prior, drift: float) -> Evidence:
    """Return the evidence of a shift between `before` and `after`.

    The likelihood ratio of the best shift against no shift, with the distribution of the runs before
    (`Density`), as standard deviations of normal noise: sqrt(2 ln ratio). Values near those of earlier runs,
    outliers or a second group, are hardly evidence.

    Args:
        drift: relative change per observation that is not a shift.
    """
    noise = learn(before, prior)
    level, scale = noise.level, 1 / noise.sigma
    new, old = len(after), len(before)
    density = Density([(value - level) * scale for value in before])
    shift = middle_of(sorted(after)) - level
    # Seen from the new level's side, so that a change is positive and what drift explains is taken off.
    sign = scale if shift > 0 else -scale
    drifted = drift * abs(level) * scale * (new + old) / 2
    off = [max(-_FAR, min(_FAR, (value - level) * sign - drifted)) for value in after]
    side = 1 if shift > 0 else -1
    middle = middle_of(sorted(off))
    unmoved = sum([density.log(side * value) for value in off])
    ratio = 0.0
    for moved in (middle, sum(off) / new, 0.8 * middle):
        if moved > 0:
            ratio = max(ratio, sum([density.log(side * (value - moved)) for value in off]) - unmoved)
    # The old level is estimated from `old` runs, and correlated runs have less information than independent ones.
    ratio *= old / ((new + old) * _inflation(noise.correlation, new))
    return Evidence(new=new, noise=noise, shift=shift, score=math.sqrt(2 * ratio))


def _inflation(correlation: float, count: int) -> float:
    """Variance of a mean of `count` neighbors, over that of independent ones."""
    if correlation == 0:
        return 1.0
    rest = 1 - correlation
    return (1 + correlation) / rest - 2 * correlation * (1 - correlation**count) / (count * rest * rest)


def confidence(score: float) -> float:
    """1 - the two-sided probability of a normal deviation of that size."""
    return math.erf(score / math.sqrt(2))
