"""Change-point detector: evaluates one series run by run, without look-ahead."""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from operator import attrgetter
from statistics import median

from tipcflow.check.detect.evidence import Evidence, best_split, confidence, weigh
from tipcflow.check.detect.noise import TINY, Prior, middle_of
from tipcflow.check.detect.series import Alert, Direction
from tipcflow.config.policy import DetectRule

ConfirmMedian = Callable[[], float | None]

# Minimum number of runs of a level.
_LEAST = 4
# A run and its confirm run.
_CONFIRMED_RUNS = 2
# The confirm runs must show at least this share of the change.
_AGREES = 0.5
# Distance of the quartiles of a normal distribution, in standard deviations.
_QUARTILES = 1.349
# An outlier that has left the window has the weight of this many runs, permanently.
_FORGOTTEN, _MOST_WEIGHT = 20.0, 120.0
# Quartiles estimate a standard deviation only roughly: a deviation beyond this is always an outlier.
_FAR = 5.0
# The middle quarter of a normal distribution, in standard deviations.
_QUARTER = 0.637
# Up to this size of a new level, each size is evaluated.
_SHORT = 8
# Share of `ask` that the rough score of an evaluated split reaches, and the bound of one run in it.
_ROUGH, _CLIP = 0.85, 4.0
# An improvement of this many standard deviations in a series without outliers does not come from another machine.
_CLEAR = 10.0
# Less evidence needs one more run: in a series with outliers or heavy tails, and where outliers are frequent.
_SURE, _SURE_AMONG_MANY, _MANY = 4.3, 5.5, 0.015
# Number of short splits that are evaluated, the roughly best ones.
_EVALUATED = 3


@dataclass
class Gate:
    """Detector of one series. Values are passed one by one; a shift starts a new history."""

    higher_is_better: bool
    rule: DetectRule
    requests: int = 0

    def __post_init__(self) -> None:
        self._prior = Prior()
        self._values: list[float] = []
        self._points: list[int] = []
        self._ordered: list[float] = []

    def copy(self) -> "Gate":
        """Return an independent copy."""
        made = copy(self)
        made._values, made._points, made._ordered = [*self._values], [*self._points], [*self._ordered]
        return made

    def add(self, index: int, value: float) -> None:
        """Add one more observation of the last run, such as its confirm run, without a result."""
        self._add(index, value)

    def judge(
        self,
        index: int,
        value: float,
        confirm_median: ConfirmMedian,
        *,
        more: Sequence[float] = (),
        node_moved: bool = False,
    ) -> Alert | None:
        """Return the alert that this value raises, if any.

        Args:
            index: of the run in its series, larger than those before.
            confirm_median: the median of a confirm run, None without one. Called at most once.
            more: the medians of further confirm runs, used with the first.
            node_moved: many metrics of this run's node moved together: what the confirm run does not show, too,
                was the node, and enters no history.
        """
        if node_moved:
            self.requests += 1
            second = confirm_median()
            if second is None:
                return None
            if not self._as_far(second, value):
                return self._judge(index, second, _not_measured)
            return self._judge(index, value, lambda: second)
        return self._judge(index, value, confirm_median, more)

    def _judge(
        self, index: int, value: float, confirm_median: ConfirmMedian, more: Sequence[float] = ()
    ) -> Alert | None:
        rule = self.rule
        self._add(index, value)
        if len(self._values) <= rule.min_history:
            return None
        evidence = self._evidence()
        if evidence is None or not (evidence.score >= rule.ask and self._large(evidence)):
            return None
        self.requests += 1
        second = confirm_median()
        if second is None:
            alone = evidence.score >= rule.alone and self._lasts(evidence)
            alone = alone and evidence.new >= rule.alone_runs + evidence.noise.has_outliers
            return self._raise(index, evidence, False) if alone else None
        for confirm in (second, *more):
            self._add(index, confirm)
        again = self._evidence()
        if again is None:
            return None
        # Fewer splits were tried for a run and its confirm runs alone.
        needed = rule.first if again.new <= _CONFIRMED_RUNS + len(more) else rule.confirmed
        sure = again.score >= needed and self._lasts(again)
        shown = median((second, *more)) - again.noise.level
        agrees = shown / again.shift >= _AGREES if again.shift else False
        if not (sure and agrees and self._large(again) and again.shift * evidence.shift > 0):
            return None
        return self._raise(index, again, True)

    def _lasts(self, evidence: Evidence) -> bool:
        """Whether the new level has lasted for enough runs."""
        noise, runs = evidence.noise, len(set(self._points[-evidence.new :]))
        often = noise.has_outliers or noise.heavy
        better = (evidence.shift > 0) == self.higher_is_better
        if better and (often or abs(evidence.shift) < _CLEAR * noise.sigma):
            return runs >= self.rule.better_runs
        sure = _SURE_AMONG_MANY if noise.outliers > _MANY else _SURE
        return runs >= 1 + (often and evidence.score < sure)

    def _as_far(self, second: float, value: float) -> bool:
        middle = middle_of(self._ordered) if self._ordered else value
        return (second - middle) * (1 if value > middle else -1) >= _AGREES * abs(value - middle)

    def _candidates(self) -> list[int]:
        """The sizes of a new level with the best rough scores."""
        values, span = self._values, min(self.rule.span, len(self._values) - _LEAST)
        middle, spread = self._middle_and_spread()
        least = (_ROUGH * self.rule.ask) ** 2
        rough, total = [], 0.0
        for new in range(1, span + 1):
            off = (values[-new] - middle) / spread
            total += -_CLIP if off < -_CLIP else min(off, _CLIP)
            if new <= _SHORT and self._points[-new] != self._points[-new - 1]:
                rough.append((total * total / new, new))
        rough = sorted(pair for pair in rough if pair[0] > least)[-_EVALUATED:]
        sizes = [new for _, new in rough]
        # All sizes have much in common, so the best fit stands for the longer ones.
        if span > _SHORT and (sizes or total * total > least * span):
            longer = best_split(values, middle, span, _LEAST)
            if longer > _SHORT and self._points[-longer] != self._points[-longer - 1]:
                sizes.append(longer)
        return sizes

    def _middle_and_spread(self) -> tuple[float, float]:
        """Return rough middle and spread of all values, which exclude most splits without a full evaluation."""
        ordered = self._ordered
        count = len(ordered)
        middle = ordered[count // 2]
        # Of two groups of runs, the middle quarter is within one of them.
        spread = min(
            (ordered[count * 3 // 4] - ordered[count // 4]) / _QUARTILES,
            (ordered[count * 5 // 8] - ordered[count * 3 // 8]) / _QUARTER,
        )
        return middle, max(spread, 1e-3 * abs(middle), TINY)

    def _add(self, index: int, value: float) -> None:
        self._values.append(value)
        self._points.append(index)
        insort(self._ordered, value)
        if len(self._values) > self.rule.window:
            self._forget()

    def _forget(self) -> None:
        """Drop the oldest value, but remember whether it was an outlier."""
        old = self._values.pop(0)
        self._points.pop(0)
        ordered = self._ordered
        del ordered[bisect_left(ordered, old)]
        count = len(ordered)
        spread = (ordered[count * 3 // 4] - ordered[count // 4]) / _QUARTILES
        if abs(old - ordered[count // 2]) > _FAR * spread:
            prior = self._prior
            weight = prior.outliers_weight + _FORGOTTEN
            share = (prior.outliers * prior.outliers_weight + 1) / weight
            self._prior = replace(prior, outliers=share, outliers_weight=min(weight, _MOST_WEIGHT))

    def _evidence(self) -> Evidence | None:
        """The split with the highest score; None if no split comes into question."""
        values = self._values
        splits = [weigh(values[:-new], values[-new:], self._prior, self.rule.drift) for new in self._candidates()]
        return max(splits, key=attrgetter("score"), default=None)

    def _large(self, evidence: Evidence) -> bool:
        level = abs(evidence.noise.level)
        return abs(evidence.shift) >= max(self.rule.floor * level, self.rule.floor_sigmas * evidence.noise.sigma)

    def _raise(self, index: int, evidence: Evidence, confirmed: bool) -> Alert:
        since = self._points[-evidence.new]
        noise = evidence.noise
        level = abs(noise.level)
        self._prior = Prior(
            sigma=noise.sigma / level if level > 0 else 0.0,
            weight=min(noise.freedom, 30.0),
            outliers=noise.outliers,
            outliers_weight=min(self._prior.outliers_weight + noise.count, _MOST_WEIGHT),
            correlation=noise.correlation,
            correlation_weight=min(10.0 + noise.count, 40.0),
        )
        recent = [(value, at) for value, at in zip(self._values, self._points, strict=True) if at >= since]
        self._values = [value for value, _ in recent]
        self._points = [at for _, at in recent]
        self._ordered = sorted(self._values)
        worse: Direction = "worse" if (evidence.shift < 0) == self.higher_is_better else "better"
        return Alert(index, since, worse, evidence.size, confidence(evidence.score), confirmed)


def _not_measured() -> float | None:
    return None
