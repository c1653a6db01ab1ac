"""Loss curves: divergence from earlier trainings, and noise between trainings with equal seeds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tipcflow.domain import CurveKey

# Losses in the order they were logged.
Curves = Mapping[CurveKey, tuple[float, ...]]

# A curve may begin to differ this much earlier than those seen so far did: half as many iterations, or this many.
_EARLIER_SHARE, _EARLIER = 2, 10


@dataclass(frozen=True)
class Divergence:
    """The first iteration, counted from 1, at which two curves differ.

    Attributes:
        curve: the first curve that differs.
        what: both values as text; of a length how many iterations there are.
        by_length: whether one only ends earlier.
    """

    at: int
    curve: CurveKey
    what: str
    by_length: bool = False

    @property
    def place(self) -> str:
        """Node and rank, and the metric of another loss: `node-1, rank 3`."""
        place = f"{self.curve.node}, rank {self.curve.rank}"
        return f"{place}, {self.curve.metric}" if self.curve.metric else place


@dataclass(frozen=True)
class Learnt:
    """Differences between trainings with one seed.

    Attributes:
        usual: the middle of the earlier losses, by iteration.
        limits: the relative deviation from it that is noise, by iteration.
        runs: how many earlier trainings it was learnt from.
        largest: the largest of the limits.
    """

    usual: dict[CurveKey, tuple[float, ...]]
    limits: dict[CurveKey, tuple[float, ...]]
    runs: int
    largest: float


def learn(trainings: Sequence[Curves], *, floor: float, factor: float) -> Learnt:
    """Learn from earlier trainings: `factor` times their largest deviation up to an iteration, or `floor`."""
    usual: dict[CurveKey, tuple[float, ...]] = {}
    limits: dict[CurveKey, tuple[float, ...]] = {}
    for who in sorted({who for curves in trainings for who in curves}):
        series = [curves[who] for curves in trainings if who in curves]
        columns = list(zip(*series, strict=False))
        usual[who] = tuple(_middle(column) for column in columns)
        apart = [max(_apart(value, usual[who][at]) for value in column) for at, column in enumerate(columns)]
        seen, highest = [], 0.0
        for deviation in apart:
            highest = max(highest, deviation)
            seen.append(highest)
        later = [min(len(seen) - 1, max(_EARLIER_SHARE * at, at + _EARLIER)) for at in range(len(seen))]
        limits[who] = tuple(max(floor, factor * seen[at]) for at in later)
    largest = max((max(limit) for limit in limits.values() if limit), default=floor)
    return Learnt(usual, limits, len(trainings), largest)


def first_divergence(current: Curves, before: Curves, limits: Curves | None = None) -> Divergence | None:
    """Where any rank first differs from before; None when none does.

    Args:
        limits: relative deviations that are noise, by iteration; without, losses are equal or not.
    """
    divergences: list[Divergence] = []
    for key in sorted(set(current) & set(before)):
        allowed = limits[key] if limits is not None else ()
        for at, (a, b) in enumerate(zip(current[key], before[key], strict=False)):
            if _apart(a, b) > (allowed[at] if allowed else 0.0):
                divergences.append(Divergence(at + 1, key, f"{a!r} against {b!r}"))
                break
        else:
            if len(current[key]) != len(before[key]):
                counts = (len(current[key]), len(before[key]))
                what = f"{counts[0]} against {counts[1]} iterations"
                divergences.append(Divergence(min(counts) + 1, key, what, by_length=True))
    return min(
        divergences, key=lambda divergence: (divergence.by_length, divergence.at, divergence.curve), default=None
    )


def _middle(values: Sequence[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return median(finite) if finite else values[0]


def _apart(a: float, b: float) -> float:
    """Relative deviation; nan equals nan, and nothing else that is not finite equals anything but itself."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(a - b) / max(abs(a), abs(b))
