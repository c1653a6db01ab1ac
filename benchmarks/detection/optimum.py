"""The smallest delays and numbers of runs that noise permits, with noise, level and step known.

- `delay`: mean number of points until the alert of a two-sided CUSUM, which no rule without confirm runs can beat
  at the same rate of false alerts (Moustakides 1986); the run lengths are Siegmund's approximation.
- `runs`: mean number of runs, with confirm runs, of Wald's sequential test of a single point.
"""

import math

YEAR = 52
# Probability that Wald's test misses a step.
_MISSED = 0.02
# What Siegmund's approximation adds to a limit for the overshoot beyond it.
_OVERSHOOT = 1.166


def delay(times: float, false_per_year: float) -> float:
    """Mean delay in points (1: the first) for a step of `times` standard deviations."""

    def length(drift: float, limit: float) -> float:
        at = limit + _OVERSHOOT
        return (math.exp(-2 * drift * at) + 2 * drift * at - 1) / (2 * drift * drift)

    wanted, low, high = 2 * YEAR / false_per_year, 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if length(-times / 2, middle) < wanted else (low, middle)
    return max(1.0, length(times / 2, high))


def runs(times: float, false_per_year: float) -> float:
    """Mean number of runs that decide at the point of the step."""
    false, missed = false_per_year / YEAR, _MISSED
    gain = (1 - missed) * math.log((1 - missed) / false) + missed * math.log(missed / (1 - false))
    return max(1.0, gain / (times * times / 2))
