"""The fit of each position of a change to the measurements: the likelihoods of a bisection.

Versions are in order, 0 is good and the last one is bad. Hypothesis `k` is that version `k` brought the
change: all versions before `k` have the good level, `k` and all later ones the bad level.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Earlier runs count as at most this many measurements of the noise: they may be of another time.
_MOST_EARLIER = 10
# Noise of a metric that repeats exactly, relative to the difference of the levels: a deviation still is one.
_EXACT = 1e-6

# Prior probability of a failure that always occurs, and the share of its runs that end otherwise.
_STEADY, _OTHERWISE = 0.7, 0.005


@dataclass(frozen=True)
class Noise:
    """The noise between runs, estimated from earlier runs.

    Attributes:
        sd: standard deviation of a run, in the unit of the measurements.
        runs: number of runs that it was computed from; 0 for unknown noise.
    """

    sd: float = 0.0
    runs: int = 0

    @property
    def degrees(self) -> int:
        """Degrees of freedom that the earlier runs contribute."""
        return min(max(self.runs - 1, 0), _MOST_EARLIER)


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

    Both levels have flat priors, and the variance the scaled inverse chi-squared prior of `noise`; integrated
    over all three, the likelihood of measurements in two groups is

        n_good^-1/2 n_bad^-1/2 (S + s)^(-(d + n - 2) / 2)

    with the sum of squares `S` within the groups, and `d` degrees of freedom and the sum of squares `s` of earlier
    runs. Source: the marginal likelihood of a normal model with two means and one variance (Gelman et al.,
    Bayesian Data Analysis, chapter 3).

    Args:
        measured: version -> its measurements; version 0 and the last one have at least one each.
    """
    values = [(version, value) for version, several in sorted(measured.items()) for value in several]
    count, degrees = len(values), noise.degrees
    ends = (sum(measured[0]) / len(measured[0]), sum(measured[versions - 1]) / len(measured[versions - 1]))
    least = (_EXACT * (abs(ends[1] - ends[0]) or abs(ends[0]) or 1.0)) ** 2
    earlier = degrees * noise.sd**2 + least
    power = (degrees + count - 2) / 2
    logs = []
    for k in range(1, versions):
        good = [value for version, value in values if version < k]
        bad = [value for version, value in values if version >= k]
        within = _squares(good) + _squares(bad)
        logs.append(-power * math.log(earlier + within) - 0.5 * math.log(len(good) * len(bad)))
    return logs


def log_failures(measured: Mapping[int, Sequence[float]], versions: int) -> list[float]:
    """Return the log likelihood of each hypothesis 1 … versions-1 for outcomes 0 (works) and 1 (fails).

    Most failures always occur: with probability 0.7, all runs but one of 200 behave as their version does.
    Otherwise the shares of failures before and after the change are unknown: Beta(0.2, 10) before, because a good
    version seldom fails, and Beta(1, 1) after it. A flaky failure needs more measurements, nothing else.
    """
    outcomes = [(version, value) for version, several in sorted(measured.items()) for value in several]
    logs = []
    for k in range(1, versions):
        good = [value for version, value in outcomes if version < k]
        bad = [value for version, value in outcomes if version >= k]
        wrong = sum(good) + len(bad) - sum(bad)
        steady = wrong * math.log(_OTHERWISE) + (len(outcomes) - wrong) * math.log1p(-_OTHERWISE)
        flaky = _beta_binomial(good, 0.2, 10.0) + _beta_binomial(bad, 1.0, 1.0)
        parts = (math.log(_STEADY) + steady, math.log1p(-_STEADY) + flaky)
        logs.append(max(parts) + math.log1p(math.exp(min(parts) - max(parts))))
    return logs


def _squares(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)


def _beta_binomial(outcomes: Sequence[float], failing: float, working: float) -> float:
    failures = sum(outcomes)
    return _log_beta(failing + failures, working + len(outcomes) - failures) - _log_beta(failing, working)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
