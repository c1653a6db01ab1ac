"""The gate: one series, judged run by run with what was known at that time."""

import math
from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass

from tipcflow.check.detect.evidence import Evidence, best_split, confidence, weigh
from tipcflow.check.detect.noise import Prior, middle_of
from tipcflow.check.detect.series import Alert, Direction
from tipcflow.config.policy import DetectRule

Ask = Callable[[], float | None]

# Fewer runs than this are no level that one can leave.
_LEAST = 4


@dataclass
class Gate:
    """Judges one series. Values are given one by one; a level that was left starts a new history."""

    higher_is_better: bool
    rule: DetectRule
    asked: int = 0

    def __post_init__(self) -> None:
        self._prior = Prior()
        self._values: list[float] = []
        self._points: list[int] = []
        self._ordered: list[float] = []
        self._up = self._down = 0.0

    def judge(self, index: int, value: float, ask: Ask) -> Alert | None:
        """The alert that this value raises, if any."""
        rule = self.rule
        suspicious = self._suspicious(value)
        self._add(index, value)
        if len(self._values) <= rule.min_history or not suspicious:
            return None
        found = self._evidence()
        if not (found.score >= rule.ask and self._large(found)):
            return None
        self.asked += 1
        second = ask()
        if second is None:
            enough = rule.alone_runs if found.noise.outliers < 0.01 else rule.alone_runs + 1
            return self._raise(index, found, False) if found.score >= rule.alone and found.new >= enough else None
        self._add(index, second)
        again = self._evidence()
        agrees = (second - found.noise.level) * math.copysign(1, found.shift) >= 0.5 * abs(found.shift)
        if not agrees or again.score < rule.confirmed or not self._large(again) or again.shift * found.shift <= 0:
            return None
        return self._raise(index, again, True)

    def _suspicious(self, value: float) -> bool:
        ordered = self._ordered
        count = len(ordered)
        if count < 16:
            return True
        middle = ordered[count // 2]
        spread = max((ordered[count * 3 // 4] - ordered[count // 4]) / 1.349, 1e-3 * abs(middle), 1e-300)
        off = (value - middle) / spread
        off = -4.0 if off < -4 else min(off, 4.0)
        self._up = max(0.0, self._up + off - 0.5)
        self._down = max(0.0, self._down - off - 0.5)
        return off > 2.2 or off < -2.2 or self._up > 3.5 or self._down > 3.5

    def _add(self, index: int, value: float) -> None:
        self._values.append(value)
        self._points.append(index)
        insort(self._ordered, value)
        if len(self._values) > self.rule.window:
            old = self._values.pop(0)
            self._points.pop(0)
            del self._ordered[bisect_left(self._ordered, old)]

    def _evidence(self) -> Evidence:
        rule, values = self.rule, self._values
        new = best_split(values, middle_of(self._ordered), rule.span, _LEAST)
        return weigh(values[:-new], values[-new:], self._prior, rule.drift)

    def _large(self, found: Evidence) -> bool:
        level = abs(found.noise.level)
        return abs(found.shift) >= max(self.rule.floor * level, self.rule.floor_sigmas * found.noise.sigma)

    def _raise(self, index: int, found: Evidence, confirmed: bool) -> Alert:
        since = self._points[-found.new]
        noise = found.noise
        level = abs(noise.level)
        self._prior = Prior(
            sigma=noise.sigma / level if level > 0 else 0.0,
            weight=min(noise.freedom, 30.0),
            outliers=noise.outliers,
            outliers_weight=min(25.0 + noise.count, 60.0),
            correlation=noise.correlation,
            correlation_weight=min(10.0 + noise.count, 40.0),
        )
        kept = [(one, at) for one, at in zip(self._values, self._points, strict=True) if at >= since]
        self._values = [one for one, _ in kept]
        self._points = [at for _, at in kept]
        self._ordered = sorted(self._values)
        self._up = self._down = 0.0
        worse: Direction = "worse" if (found.shift < 0) == self.higher_is_better else "better"
        return Alert(index, since, worse, found.size, confidence(found.score), confirmed)
