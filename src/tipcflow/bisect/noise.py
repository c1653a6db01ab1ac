"""The noise between runs and the good level, estimated from earlier runs of a chain."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Self

# Earlier runs count as at most this many measurements of the noise and of the level: they may be of another time.
_MOST_EARLIER = 10
# Fewer earlier runs do not determine the noise.
_LEAST_EARLIER = 5
# Earlier runs are of the good level if its measurements are within this many standard errors of them.
_SAME_LEVEL = 2.0
# The level has changed between two runs if the means before and after differ by this many standard errors: without
# a change, 3 % of the best splits of 10 or 20 runs do.
_CHANGED = 3.5
# Least number of runs before and after a change: one run is an outlier, not a level.
_SEGMENT = 2
# Runs farther from the median of their level are outliers, in standard deviations by the median deviation.
_OUTLIER, _OF_MEDIAN = 5.0, 1.4826


@dataclass(frozen=True)
class Noise:
    """The noise between runs, and the good level, estimated from earlier runs.

    Attributes:
        sd: standard deviation of a run, in the unit of the measurements.
        degrees: degrees of freedom of `sd`; 0 for unknown noise.
        level: mean of the newest earlier runs, if they are of the good level; None if that is unknown.
        good_runs: number of measurements of the good level that they count as.
    """

    sd: float = 0.0
    degrees: int = 0
    level: float | None = None
    good_runs: int = 0

    @classmethod
    def of(cls, earlier: Sequence[float], good: Sequence[float]) -> Self:
        """Return the noise of earlier runs. Earlier changes of the level, and outliers, are not noise.

        Args:
            earlier: values of other accepted runs, oldest first.
            good: measurements of the good version.
        """
        if len(earlier) < _LEAST_EARLIER:
            return cls()
        segments = [_without_outliers(segment) for segment in _segments(earlier)]
        degrees = sum(len(segment) - 1 for segment in segments)
        sd = math.sqrt(sum(map(_squares, segments)) / degrees)
        recent = segments[-1][-_MOST_EARLIER:]
        level, counted = fmean(recent), min(degrees, _MOST_EARLIER)
        error = sd * math.sqrt(1 / len(recent) + 1 / max(1, len(good)))
        if not good or abs(fmean(good) - level) > _SAME_LEVEL * error:
            return cls(sd, counted)
        return cls(sd, counted, level, len(recent))


def _segments(values: Sequence[float]) -> list[Sequence[float]]:
    """Return the runs between changes of the level, by binary segmentation."""
    splits = range(_SEGMENT, len(values) - _SEGMENT + 1)
    if not splits or len(values) < _SEGMENT + 3:  # no degree of freedom would be left for the scatter
        return [values]
    within = {at: _squares(values[:at]) + _squares(values[at:]) for at in splits}
    best = min(splits, key=lambda at: within[at])
    explained, rest = _squares(values) - within[best], within[best] / (len(values) - 2)
    if explained <= _CHANGED**2 * rest:
        return [values]
    return [*_segments(values[:best]), *_segments(values[best:])]


def _without_outliers(values: Sequence[float]) -> Sequence[float]:
    middle = median(values)
    farthest = _OUTLIER * _OF_MEDIAN * median(abs(value - middle) for value in values)
    return [value for value in values if abs(value - middle) <= farthest] if farthest else values


def _squares(values: Sequence[float]) -> float:
    mean = fmean(values)
    return math.fsum((value - mean) ** 2 for value in values)
