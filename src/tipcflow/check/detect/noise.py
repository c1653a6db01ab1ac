"""Noise model: robust level and scatter of runs without a shift."""

import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from operator import mul

from tipcflow.domain.numbers.spread import MAD_TO_SIGMA

# Replaces a spread of 0; its square is not 0 in floating point.
TINY = 1e-150
# Deviations are clipped at this many robust standard deviations; 1.022 corrects a normal's clipped variance.
_CLIP, _CLIP_BIAS = 2.5, 1.022
_LOCATION_CLIP = 1.5
# Farther from the level than this, in standard deviations, is an outlier.
_OUTLIER = 4.0
# A share of outliers that no prior has by itself, and that one outlier in a history of usual length exceeds.
_OUTLIER_RATE = 0.008
# Beyond `_CLIP` are 1.2 % of normal deviations, with a prior weight of 20 runs. More than 3 %: heavy tails.
_TAIL, _TAIL_WEIGHT, _HEAVY = 0.012, 20, 0.03
# Rounding error of the mean of equal values, relative to it.
_ROUNDING = 8 * sys.float_info.epsilon
# Share of the observations whose deviations carry information on a robust scale.
SCALE_EFFICIENCY = 0.7


@dataclass(frozen=True, slots=True)
class Prior:
    """Prior of the noise, with the weight of `weight` observations.

    Attributes:
        sigma: relative standard deviation between runs.
        outliers: share of runs unrelated to the level (a busy node, a full disk).
        correlation: between one run and the next.
    """

    sigma: float = 0.008
    weight: float = 3.0
    outliers: float = 0.001
    outliers_weight: float = 25.0
    correlation: float = 0.0
    correlation_weight: float = 10.0


@dataclass(frozen=True, slots=True)
class Noise:
    """The level and the noise of some observations.

    Attributes:
        level: robust mean, in the series' unit.
        sigma: robust standard deviation of one run, in the series' unit.
        freedom: degrees of freedom of `sigma`.
        outliers: share of runs that are far off.
        correlation: of neighbors, never below 0.
        tails: share of runs beyond `_CLIP` standard deviations, outliers among them.
    """

    level: float
    sigma: float
    freedom: float
    outliers: float
    correlation: float
    tails: float
    count: int

    @property
    def heavy(self) -> bool:
        """Whether far deviations are more frequent than those of normal noise."""
        return self.tails > _HEAVY

    @property
    def has_outliers(self) -> bool:
        """Whether any run, including those in the prior, is an outlier."""
        return self.outliers > _OUTLIER_RATE


def learn(values: Sequence[float], prior: Prior) -> Noise:
    """Level and noise of at least one observation, in the order in which they were made."""
    count = len(values)
    ordered = sorted(values)
    middle = middle_of(ordered)
    # Of values in order these are two rows in order: quickly sorted.
    spread = MAD_TO_SIGMA * middle_of(sorted([abs(value - middle) for value in ordered]))
    believed = prior.sigma * abs(middle)
    rough = max(spread, 0.3 * believed, TINY)
    near = _LOCATION_CLIP * rough
    level = _clipped_sum(ordered, middle - near, middle + near) / count
    limit = _CLIP * rough
    inside = level - limit <= ordered[0] and ordered[-1] <= level + limit
    deviations = [value - level for value in (values if inside else clipped(values, level - limit, level + limit))]
    squares: float = sum(map(mul, deviations, deviations))
    informative = SCALE_EFFICIENCY * (count - 1)
    variance = _CLIP_BIAS * squares / (count - 1) if count > 1 else 0.0
    if variance > believed * believed:
        # The prior may only widen the noise: values that are noisier than it count as they are.
        freedom, sigma = max(informative, 1.0), math.sqrt(variance)
    else:
        freedom = prior.weight + informative
        sigma = math.sqrt((prior.weight * believed * believed + informative * variance) / freedom)
    outliers = _beyond(ordered, level, _OUTLIER * sigma)
    return Noise(
        level=level,
        sigma=max(sigma, TINY),
        freedom=freedom,
        outliers=(prior.outliers * prior.outliers_weight + outliers) / (prior.outliers_weight + count),
        correlation=_correlation(deviations, squares, level, prior),
        tails=(_TAIL * _TAIL_WEIGHT + (0 if inside else _beyond(ordered, level, limit))) / (_TAIL_WEIGHT + count),
        count=count,
    )


def _correlation(deviations: list[float], squares: float, level: float, prior: Prior) -> float:
    """Correlation of neighbors; the prior's where the deviations are only the rounding of the mean."""
    count = len(deviations)
    rounding = _ROUNDING * level
    if squares <= rounding * rounding * count:
        return prior.correlation
    products: float = sum(map(mul, deviations, islice(deviations, 1, None)))
    # A mean that was estimated from the same values makes them look 1/n less alike than they are.
    estimate = products / squares + 1 / count
    weight = prior.correlation_weight
    return max(0.0, min(0.8, (weight * prior.correlation + count * estimate) / (weight + count)))


def _beyond(ordered: Sequence[float], level: float, limit: float) -> int:
    """How many of values in order are farther from the level than the limit."""
    return bisect_left(ordered, level - limit) + len(ordered) - bisect_right(ordered, level + limit)


def _clipped_sum(ordered: Sequence[float], low: float, high: float) -> float:
    """The sum of values in order, those beyond a limit put on it."""
    # Finite limits: 0 times an infinite one is not a number.
    low, high = max(low, ordered[0]), min(high, ordered[-1])
    first, last = bisect_left(ordered, low), bisect_right(ordered, high)
    return first * low + sum(ordered[first:last]) + (len(ordered) - last) * high


def clipped(values: Sequence[float], low: float, high: float) -> list[float]:
    """The values, those beyond a limit put on it."""
    return [value if low < value < high else (high if value >= high else low) for value in values]


def middle_of(ordered: Sequence[float]) -> float:
    """The median of values in order."""
    count = len(ordered)
    half = count // 2
    return ordered[half] if count % 2 else 0.5 * (ordered[half - 1] + ordered[half])
