"""Input and output of the change-point detector: a metric over runs, and alerts."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Direction = Literal["worse", "better"]


class Point(NamedTuple):
    """One run of a series.

    Attributes:
        run, node: which run, and where it was measured; '' where that is unknown.
        value: the median of the run's samples, in the series' unit; None when it has none (a gap).
        confirm: the median of the confirm run's samples; None when there was none. It is known only to a gate that
            requests it at this point.
        more: those of further confirm runs, in their order.
    """

    run: str
    node: str
    value: float | None
    confirm: float | None = None
    more: tuple[float, ...] = ()


class Observed(NamedTuple):
    """An earlier run of a metric.

    Attributes:
        confirm: value of its confirm run, another observation of the same commit; None without one.
        accepted: whether later runs are compared with it. One that is not is evidence for the detector only.
        more: values of further confirm runs.
    """

    value: float
    confirm: float | None = None
    accepted: bool = True
    more: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """One metric over runs, oldest first.

    Attributes:
        higher_is_better: which direction of a change is an improvement.
    """

    id: str
    unit: str
    higher_is_better: bool
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Alert:
    """A detected shift.

    Attributes:
        index: the point at which it is raised, counted from 0.
        since: the first point that belongs to the new level, as far as it is known when it is raised.
        size: (new level - old level) / |old level|: -0.03 is 3 % lower, whichever direction is better.
        confidence: 1 - the probability that noise like this history's gives evidence as strong, at one look; None
            where the limit of the checks decided, not the detector.
        confirmed: whether a confirm run was part of the evidence.
    """

    index: int
    since: int
    direction: Direction
    size: float
    confidence: float | None
    confirmed: bool
