"""Predicted durations with their spread."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tipcflow.domain.numbers.spread import MAD_TO_SIGMA

# Standard deviations above the median that a plan reserves: one run in 40 takes longer.
_SIGMAS = 2.0
_FEW = 4


@dataclass(frozen=True)
class Estimate:
    """A predicted duration in seconds.

    Attributes:
        seconds: the median.
        planned: what a budget reserves: the median with its spread.
        runs: number of past runs; 0: the default for unknown durations.
    """

    seconds: float
    planned: float
    runs: int


@dataclass(frozen=True)
class Samples:
    """Durations in seconds of past runs of one chain.

    Attributes:
        steps: step -> durations without its legs.
        legs: (step, leg) -> durations.
    """

    steps: dict[str, list[float]]
    legs: dict[tuple[str, str], list[float]]


def estimate(seconds: Sequence[float], default_s: float) -> Estimate:
    """The estimate from past durations. With fewer than 4, a plan reserves at least the longest one.

    Args:
        default_s: assumed without history.
    """
    if not seconds:
        return Estimate(default_s, default_s, 0)
    middle = median(seconds)
    spread = MAD_TO_SIGMA * median(abs(duration - middle) for duration in seconds)
    longest = max(seconds) if len(seconds) < _FEW else 0.0
    return Estimate(middle, max(middle + _SIGMAS * spread, longest), len(seconds))
