"""Detector limits on one history: rate of false alerts and smallest detectable change."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from tipcflow.check.detect.gate import Gate
from tipcflow.check.detect.noise import Prior, learn
from tipcflow.config.policy import DetectRule

# Runs within which a change is to be found, and with which probability (as standard deviations, one-sided).
RUNS, _SURE = 12, 1.645
# Variance of a median over that of a mean; what learning the noise and clipping cost, as simulation shows.
_MEDIAN, _LEARNING = 1.571, 1.15
# Runs in a year of weeks, and how many of them a simulated series has.
_YEAR, _LENGTH = 52, 104
# Resampling draws blocks of neighbors, which preserves their correlation.
_BLOCK = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the change-point detector on one metric.

    Attributes:
        runs: in the history.
        sigma: relative standard deviation of one run.
        false_per_year: alerts per series and year of 52 runs where nothing changes, on series drawn from the
            history; None when there are too few runs to draw from.
        simulated_years: how many such years it was counted over: 0 in 100 means below about 0.03.
        smallest: the relative change that is found within `RUNS` runs in 95 of 100 cases; None when unknown.
    """

    runs: int
    sigma: float | None
    false_per_year: float | None
    simulated_years: float
    smallest: float | None


def limits_of(values: Sequence[float], rule: DetectRule, *, higher_is_better: bool, years: int = 100) -> Limits:
    """Return the detector's limits on a metric with this history.

    Args:
        values: medians of accepted runs, oldest first.
        years: how many series-years are simulated (1 to 2 ms each); 0 for none: then false alerts are not known.
    """
    recent = list(values[-rule.window :])  # as many as a gate keeps
    if len(recent) < rule.min_history:
        return Limits(len(recent), None, None, 0.0, None)
    noise = learn(recent, Prior())
    level = abs(noise.level)
    if level == 0:
        return Limits(len(recent), None, None, 0.0, None)
    series = max(1, round(years * _YEAR / _LENGTH)) if years else 0
    false = sum(_alerts(recent, rule, higher_is_better, seed) for seed in range(series))
    simulated = series * _LENGTH / _YEAR
    return Limits(
        runs=len(recent),
        sigma=noise.sigma / level,
        false_per_year=false / simulated if simulated else None,
        simulated_years=simulated,
        smallest=_smallest(len(recent), noise.sigma / level, noise.correlation, rule),
    )


def _alerts(history: Sequence[float], rule: DetectRule, higher_is_better: bool, seed: int) -> int:
    """Alerts on one series drawn from the history in blocks; confirm runs are drawn from it, too."""
    source = random.Random(seed)
    drawn: list[float] = []
    while len(drawn) < _LENGTH:
        at = source.randrange(max(1, len(history) - _BLOCK + 1))
        drawn += history[at : at + _BLOCK]
    gate = Gate(higher_is_better, rule)
    return sum(
        gate.judge(index, value, lambda: source.choice(history)) is not None
        for index, value in enumerate(drawn[:_LENGTH])
    )


def _smallest(runs: int, sigma: float, correlation: float, rule: DetectRule) -> float:
    """The shift whose score passes with 95 %, without confirm runs: with them it is smaller."""
    alike = (1 + correlation) / (1 - correlation)
    error = _LEARNING * sigma * math.sqrt(alike * (1 / RUNS + 1 / runs))
    of_median = _LEARNING * sigma * math.sqrt(alike * (_MEDIAN / RUNS + 1 / runs))
    drifted = rule.drift * (runs + RUNS) / 2
    # A standard deviation estimated from few runs requires a larger score.
    freedom = max(1.0, 0.7 * (runs - 1))
    needed = rule.alone * (1 + (rule.alone**2 + 1) / (4 * freedom))
    floor = max(rule.floor, rule.floor_sigmas * sigma)
    return max(floor + _SURE * of_median, drifted + (needed + _SURE) * error)
