"""The fit of each position of a change to the measurements: the likelihoods of a bisection, and what to expect of
another measurement.

Versions are in order, 0 is good and the last one is bad. Hypothesis `k` is that version `k` brought the
change: all versions before `k` have the good level, `k` and all later ones the bad level.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from tipcflow.bisect.noise import Noise

# Noise of a metric that repeats exactly, relative to the difference of the levels: a deviation still is one.
_EXACT = 1e-6

# Standard deviations from a level and probability of the results that represent a normal distribution
# (Gauss-Hermite quadrature with five points).
_NORMAL = (
    (-2.85697, 0.011257),
    (-1.35563, 0.222076),
    (0.0, 0.533333),
    (1.35563, 0.222076),
    (2.85697, 0.011257),
)

# Prior probability of a failure that always occurs, and the share of its runs that end otherwise. With 0.7, such a
# failure needs one run less, and one that occurs in half of the runs has a wrong result in 9 % of the searches.
_STEADY, _OTHERWISE = 0.3, 0.005
# Beta distributions of the share of failures of a flaky failure, before and since the change.
_BEFORE, _SINCE = (0.2, 10.0), (1.0, 1.0)


@dataclass(frozen=True)
class Levels:
    """Known levels: good and bad mean and the standard deviation of a run."""

    good: float
    bad: float
    sd: float


def log_known(measured: Mapping[int, Sequence[float]], versions: int, levels: Levels) -> list[float]:
    """Return the log likelihood of each hypothesis 1 … versions-1 for known levels.

    Args:
        measured: version -> its measurements.
        versions: number of versions, with the good and the bad one.
    """
    gains = {
        version: sum(
            ((value - levels.good) ** 2 - (value - levels.bad) ** 2) / (2 * levels.sd**2) for value in values
        )
        for version, values in measured.items()
    }
    # The gain of a version counts for the hypotheses by which it is bad: k <= version.
    return [sum(gain for version, gain in gains.items() if version >= k) for k in range(1, versions)]


def log_levels(measured: Mapping[int, Sequence[float]], versions: int, noise: Noise) -> list[float]:
    """Return the log likelihood of each hypothesis 1 … versions-1 for unknown levels and noise.

    The bad level has a flat prior, the good one too or that of the earlier runs, and the variance the scaled
    inverse chi-squared prior of `noise`; integrated over all three, the likelihood of two groups is

        n_good^-1/2 n_bad^-1/2 (S + s)^(-(d + n - 2) / 2)

    with the sum of squares `S` within the groups, and `d` degrees of freedom and the sum of squares `s` of earlier
    runs. Earlier runs of the good level count in its group, all with the value `noise.level`: their scatter is in
    `s`. Source: the marginal likelihood of a normal model with two means and one variance (Gelman et al., Bayesian
    Data Analysis, chapter 3).

    Args:
        measured: version -> its measurements; version 0 and the last one have at least one each.
    """
    groups = _Groups(measured, versions, noise)
    power = groups.freedom / 2
    return [
        -power * math.log(groups.earlier + groups.within(k)) - 0.5 * math.log(groups.good[k] * groups.bad(k))
        for k in range(1, versions)
    ]


def level_outcomes(
    measured: Mapping[int, Sequence[float]], posterior: Sequence[float], place: int, noise: Noise
) -> list[tuple[float, float]]:
    """Return possible results of another measurement, with their probabilities.

    They represent two normal distributions around the levels, which are averages over the hypotheses.

    Args:
        measured: version -> its measurements; version 0 and the last one have at least one each.
        posterior: probability of each hypothesis 1 … versions-1.
        place: the version to measure.
    """
    groups = _Groups(measured, len(posterior) + 1, noise)
    hypotheses = list(enumerate(posterior, 1))
    good = math.fsum(mass * groups.good_sums[k] / groups.good[k] for k, mass in hypotheses)
    bad = math.fsum(mass * groups.bad_sum(k) / groups.bad(k) for k, mass in hypotheses)
    squares = math.fsum(mass * groups.within(k) for k, mass in hypotheses)
    sd = math.sqrt((groups.earlier + squares) / max(1, groups.freedom))
    is_bad = math.fsum(posterior[:place])
    sides = ((good, 1 - is_bad), (bad, is_bad))
    return [
        (groups.origin + level + off * sd, side * mass)
        for level, side in sides
        for off, mass in _NORMAL
        if side > 0
    ]


class _Groups:
    """Measurements by hypothesis: those before version `k` are good, the others bad.

    Values are deviations from `origin`, between the ends: sums of squares of nearly equal values are exact.

    Attributes:
        earlier: sum of squares that the earlier runs contribute.
        good, good_sums: for each `k`, number and sum of the good measurements.
        freedom: degrees of freedom of all squares.
    """

    def __init__(self, measured: Mapping[int, Sequence[float]], versions: int, noise: Noise) -> None:
        first, last = (math.fsum(measured[end]) / len(measured[end]) for end in (0, versions - 1))
        least = (_EXACT * (abs(last - first) or abs(first) or 1.0)) ** 2
        self.origin = (first + last) / 2
        self.earlier = noise.degrees * noise.sd**2 + least
        values = [[value - self.origin for value in measured.get(place, ())] for place in range(versions)]
        known = noise.good_runs
        level = 0.0 if noise.level is None else noise.level - self.origin
        self.good = list(accumulate(map(len, values), initial=known))
        self.good_sums = list(accumulate(map(math.fsum, values), initial=known * level))
        squares = (math.fsum(value * value for value in several) for several in values)
        self._squares = math.fsum([known * level * level, *squares])
        self.freedom = noise.degrees + self.good[-1] - known - (1 if known else 2)

    def bad(self, k: int) -> int:
        """Number of bad measurements."""
        return self.good[-1] - self.good[k]

    def bad_sum(self, k: int) -> float:
        """Sum of the bad measurements."""
        return self.good_sums[-1] - self.good_sums[k]

    def within(self, k: int) -> float:
        """Sum of squares within both groups."""
        between = self.good_sums[k] ** 2 / self.good[k] + self.bad_sum(k) ** 2 / self.bad(k)
        return max(0.0, self._squares - between)


def log_failures(measured: Mapping[int, Sequence[float]], versions: int) -> list[float]:
    """Return the log likelihood of each hypothesis 1 … versions-1 for outcomes 0 (works) and 1 (fails).

    Either the failure always occurs: all runs but one of 200 behave as their version does. Or the shares of
    failures before and since the change are unknown: Beta(0.2, 10) before, because a good version seldom fails,
    and Beta(1, 1) since. A flaky failure needs more measurements, nothing else.
    """
    counts = [len(measured.get(place, ())) for place in range(versions)]
    failures = [int(sum(measured.get(place, ()))) for place in range(versions)]
    runs, failed = sum(counts), sum(failures)
    logs = []
    for good_runs, good_failed in list(zip(accumulate(counts), accumulate(failures), strict=True))[:-1]:
        bad_runs, bad_failed = runs - good_runs, failed - good_failed
        wrong = good_failed + bad_runs - bad_failed
        steady = wrong * math.log(_OTHERWISE) + (runs - wrong) * math.log1p(-_OTHERWISE)
        flaky = _beta_binomial(good_failed, good_runs, *_BEFORE) + _beta_binomial(bad_failed, bad_runs, *_SINCE)
        parts = (math.log(_STEADY) + steady, math.log1p(-_STEADY) + flaky)
        logs.append(max(parts) + math.log1p(math.exp(min(parts) - max(parts))))
    return logs


def failure_outcomes(
    measured: Mapping[int, Sequence[float]], posterior: Sequence[float], place: int
) -> list[tuple[float, float]]:
    """Return both results of another measurement, 0 and 1, with their probabilities.

    Args:
        measured: version -> its outcomes.
        posterior: probability of each hypothesis 1 … versions-1.
        place: the version to measure.
    """
    versions = len(posterior) + 1
    known = log_failures(measured, versions)
    fails = log_failures({**measured, place: [*measured.get(place, ()), 1.0]}, versions)
    share = math.fsum(
        mass * math.exp(after - before) for mass, before, after in zip(posterior, known, fails, strict=True)
    )
    return [(0.0, 1 - share), (1.0, share)]


@lru_cache(maxsize=100_000)
def _beta_binomial(failures: int, runs: int, failing: float, working: float) -> float:
    return _log_beta(failing + failures, working + runs - failures) - _log_beta(failing, working)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
