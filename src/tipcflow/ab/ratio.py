"""The ratio B / A of a metric from pairs of runs, with an interval that is valid at every number of pairs.

A test with a fixed number of runs errs more often than it states if its user looks after each run and stops when
the result is clear. This interval covers the true ratio at all numbers of pairs at once, with the stated error.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, stdev

from tipcflow.domain.numbers.metrics import Better

# Precision of the prior of the effect, in pairs: differences of about two standard deviations are expected.
_PRIOR = 0.25


class Outcome(StrEnum):
    """The effect of B according to the pairs."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Ratio:
    """A ratio B / A.

    Attributes:
        value: geometric mean of the pairs' ratios.
        low, high: bounds of the interval; 0 and inf if the pairs are too few.
        pairs: number of pairs.
    """

    value: float
    low: float
    high: float
    pairs: int


def ratio_of(pairs: Sequence[tuple[float, float]], error: float) -> Ratio:
    """Return the ratio B / A with its interval.

    The logarithms of the pairs' ratios are taken as normal with unknown mean and variance. With the prior
    Normal(0, 1 / g) of the mean in units of the standard deviation and the Jeffreys prior of the latter, the Bayes
    factor of the mean m against any other after n pairs with t = sqrt(n) (mean - m) / s is

        sqrt(g / (n + g)) ((1 + t² / (n - 1)) / (1 + g / (n + g) t² / (n - 1)))^(n / 2)

    and exceeds 1 / error at some n with a probability of at most `error` if m is true (Ville's inequality); the
    interval consists of all m that it does not exceed. Source: the sequential t-test with a mixture (Lai, "On
    confidence sequences", 1976; Wang and Ramdas, "Anytime-valid t-tests and confidence sequences", 2023).

    Args:
        pairs: values (of A, of B), all positive.
        error: probability that the interval ever excludes the true ratio, between 0 and 1.

    Raises:
        ValueError: no pair, a value that is not positive, or an error outside of (0, 1).
    """
    if not pairs or not all(a > 0 and b > 0 for a, b in pairs):
        raise ValueError("a ratio needs pairs of positive values")
    if not 0 < error < 1:
        raise ValueError(f"the error must be between 0 and 1, found {error}")
    logs = [math.log(b) - math.log(a) for a, b in pairs]
    count, mean = len(logs), fmean(logs)
    half = _half_width(logs, error)
    if math.isinf(half):
        return Ratio(math.exp(mean), 0.0, math.inf, count)
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half), count)


def least_pairs(error: float) -> int:
    """Return the smallest number of pairs with a finite interval: 4 for an error of 0.02."""
    count = 2
    while _largest_t_squared(count, error) is None:
        count += 1
    return count


def _half_width(logs: Sequence[float], error: float) -> float:
    """Return half the width of the interval of the mean."""
    count = len(logs)
    t_squared = _largest_t_squared(count, error)
    return math.inf if t_squared is None else math.sqrt(t_squared / count) * stdev(logs)


def _largest_t_squared(count: int, error: float) -> float | None:
    """Return the largest t² whose Bayes factor does not exceed 1 / error; None if there is no such limit."""
    shrink = _PRIOR / (count + _PRIOR)
    bound: float = math.pow(1 / (error * math.sqrt(shrink)), 2 / count)
    if count < 2 or bound * shrink >= 1:
        return None
    return (count - 1) * (bound - 1) / (1 - bound * shrink)


def outcome_of(ratio: Ratio, better: Better, margin: float) -> Outcome:
    """Return the effect of B according to a ratio.

    Args:
        better: direction of the metric.
        margin: differences up to this share count as none: B is the same if the whole interval is within
            1 / (1 + margin) and 1 + margin.
    """
    if 1 / (1 + margin) <= ratio.low and ratio.high <= 1 + margin:
        return Outcome.SAME
    if ratio.low <= 1 <= ratio.high:
        return Outcome.UNDECIDED
    return Outcome.BETTER if (ratio.low > 1) == (better == "higher") else Outcome.WORSE
