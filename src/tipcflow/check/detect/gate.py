"""Change-point detector: evaluates one series run by run, without look-ahead."""

from bisect import bisect_left, insort
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace

from tipcflow.check.detect.evidence import Evidence, best_split, confidence, weigh
from tipcflow.check.detect.noise import TINY, Prior, middle_of
from tipcflow.check.detect.series import Alert, Direction
from tipcflow.config.policy import DetectRule

Ask = Callable[[], float | None]

# Minimum number of runs of a level.
_LEAST = 4
# A run and its confirm run; one more run if the series had outliers.
_CONFIRMED_RUNS = 2
# Where runs are often far off, two of them alone must be so much surer, but never surer than this share of the
# score that two runs can reach at all.
_BOTH_ODD, _REACHABLE = 0.2, 0.97
# A confirm run must show at least this share of the change.
_AGREES = 0.5
# Distance of the quartiles of a normal distribution, in standard deviations.
_QUARTILES = 1.349
# An outlier that has left the window has the weight of this many runs, permanently.
_FORGOTTEN, _MOST_WEIGHT = 20.0, 120.0
# Quartiles estimate a standard deviation only roughly: a deviation beyond this is always an outlier.
_FAR = 5.0
# Nearer to the middle than this, in standard deviations, the last run alone is not a change.
_NEAR = 1.5


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
        self._up = self._down = 0.0

    def copy(self) -> "Gate":
        """Return an independent copy."""
        made = copy(self)
        made._values, made._points, made._ordered = [*self._values], [*self._points], [*self._ordered]
        return made

    def judge(self, index: int, value: float, ask: Ask, *, node_moved: bool = False) -> Alert | None:
        """Return the alert that this value raises, if any.

        Args:
            index: of the run in its series, larger than those before.
            ask: the median of a confirm run, None when there is none. Called at most once.
            node_moved: many metrics of this run's node moved together: what the confirm run does not show, too,
                was the node, and enters no history.
        """
        if node_moved:
            self.requests += 1
            second = ask()
            if second is None:
                return None
            if not self._as_far(second, value):
                return self._judge(index, second, _nobody)
            return self._judge(index, value, lambda: second)
        return self._judge(index, value, ask)

    def _judge(self, index: int, value: float, ask: Ask) -> Alert | None:
        rule = self.rule
        suspicious = self._suspicious(value)
        self._add(index, value)
        if len(self._values) <= rule.min_history or not suspicious:
            return None
        evidence = self._evidence()
        if not (evidence.score >= rule.ask and self._large(evidence)):
            return None
        self.requests += 1
        second = ask()
        if second is None:
            alone = evidence.score >= rule.alone and evidence.new >= rule.alone_runs + evidence.noise.has_outliers
            return self._raise(index, evidence, False) if alone else None
        self._add(index, second)
        again = self._evidence()
        sure = again.score >= self._needed(again) and again.new >= _CONFIRMED_RUNS + again.noise.has_outliers
        agrees = (second - again.noise.level) / again.shift >= _AGREES if again.shift else False
        if not (sure and agrees and self._large(again) and again.shift * evidence.shift > 0):
            return None
        return self._raise(index, again, True)

    def _needed(self, evidence: Evidence) -> float:
        """A run and its confirm run alone had fewer splits; if many runs are outliers, both may be."""
        if evidence.new > _CONFIRMED_RUNS:
            return self.rule.confirmed
        if not evidence.noise.heavy:
            return self.rule.first
        return max(self.rule.first, min(self.rule.confirmed + _BOTH_ODD, _REACHABLE * evidence.most))

    def _as_far(self, second: float, value: float) -> bool:
        middle = middle_of(self._ordered) if self._ordered else value
        return (second - middle) * (1 if value > middle else -1) >= _AGREES * abs(value - middle)

    def _suspicious(self, value: float) -> bool:
        if len(self._ordered) < 16:
            return True
        middle, spread = self._middle_and_spread()
        off = (value - middle) / spread
        off = -4.0 if off < -4 else min(off, 4.0)
        self._up = max(0.0, self._up + off - 0.5)
        self._down = max(0.0, self._down - off - 0.5)
        return off > 2.2 or off < -2.2 or self._up > 3.5 or self._down > 3.5

    def _middle_and_spread(self) -> tuple[float, float]:
        """Return rough middle and spread of all values, which decide whether a full evaluation is needed."""
        ordered = self._ordered
        count = len(ordered)
        middle = ordered[count // 2]
        return middle, max((ordered[count * 3 // 4] - ordered[count // 4]) / _QUARTILES, 1e-3 * abs(middle), TINY)

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

    def _evidence(self) -> Evidence:
        """The better of two: the split that fits best, and the last run (with its confirm run) alone."""
        rule, values = self.rule, self._values
        middle, spread = self._middle_and_spread()
        new = best_split(values, middle, rule.span, _LEAST)
        best = weigh(values[:-new], values[-new:], self._prior, rule.drift)
        last = 2 if self._points[-1] == self._points[-2] else 1
        if new == last or abs(sum(values[-last:]) / last - middle) < _NEAR * spread:
            return best
        alone = weigh(values[:-last], values[-last:], self._prior, rule.drift)
        return alone if alone.score > best.score else best

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
        self._up = self._down = 0.0
        worse: Direction = "worse" if (evidence.shift < 0) == self.higher_is_better else "better"
        return Alert(index, since, worse, evidence.size, confidence(evidence.score), confirmed)


def _nobody() -> float | None:
    return None
