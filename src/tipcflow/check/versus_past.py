"""A number against those of accepted earlier runs: beyond noise or not, in words."""

import math
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tipcflow.check.level import Level, level_of
from tipcflow.check.select import amount
from tipcflow.config.policy import MetricRule, Policy
from tipcflow.domain import Status, plain_metric
from tipcflow.domain.metrics import Metric
from tipcflow.parse import metric

# 1.4826 * MAD is the standard deviation of a normal distribution.
_MAD_TO_SIGMA = 1.4826
# A confirm run that shows less than this share of a change refutes it.
_AGREES = 0.5
# With this many times the history that the gate needs, it is as sure as it gets.
_GROWN = 2
# So many times beyond the limit no gate is asked whether that is an outlier.
_FAR = 2
# Nor is a confirm run needed, where there cannot be one.
_ALONE = 2
_AGAIN = "run again to confirm or refute it"

Answer = tuple[Status, str]


@dataclass(frozen=True)
class Confirm:
    """What the confirm run measured (None: nothing), why there is no number, and whether none can ever tell."""

    value: float | None = None
    missing: str = ""
    impossible: bool = False


@dataclass
class Question:
    """Is this number worse than those of earlier runs?

    Attributes:
        name: as `numbers_of` has it.
        past: of accepted runs, oldest first; finite.
        values: the numbers it is judged by; `confirm` is among them while a confirm run is wanted.
    """

    name: str
    value: float
    past: list[float]
    rule: MetricRule
    policy: Policy
    confirm: Confirm
    values: dict[str, Any] = field(default_factory=dict)
    # The earlier runs that count, and whether the last of all is one of them.
    _level: list[float] = field(init=False)
    _reaches: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        self._level = self.past

    @property
    def known(self) -> Metric:
        """What is known of the metric."""
        return metric(plain_metric(self.name))

    @property
    def base(self) -> float:
        """The median of the earlier runs; where their level changed, of those of the level that counts."""
        return median(self._level)

    @property
    def now(self) -> str:
        """The number with its unit."""
        return amount(self.value, self.known.unit)

    @property
    def shown(self) -> str:
        """The number and its baseline."""
        ratio = f"{self.value / self.base:.3f} x the baseline {amount(self.base, self.known.unit)}"
        return f"{self.now}, {ratio} of {len(self._level)} runs"

    @property
    def cost(self) -> float:
        """How many times worse than the baseline."""
        if self.known.better == "lower":
            return self.value / self.base
        return self.base / self.value if self.value > 0 else math.inf

    def answer(self) -> Answer:
        """(status, reason)."""
        past, policy, needed = self.past, self.policy, self.policy.min_history
        self.values |= {"value": self.value, "unit": self.known.unit, "n": len(past), "needed": needed}
        if not past:
            return Status.INSUFFICIENT_DATA, f"{self.now}; no earlier run to compare with, {needed} are missing"
        if len(past) < needed:
            ratio = f"{self.value / past[-1]:.3f} x the last run" if past[-1] else "the last run had 0"
            return Status.INSUFFICIENT_DATA, f"{self.now}, {ratio}; {len(past)} of {needed} earlier runs"
        said = self._gate() if len(past) >= policy.detect.min_history else None
        if said is not None:
            self._level, self._reaches = past[said.start : said.end], said.end == len(past)
            self.values["n"] = len(self._level)
        base = self.base
        if base == 0:
            return Status.INSUFFICIENT_DATA, f"{self.now}; the baseline of {len(self._level)} runs is 0"
        self.values |= {"baseline": base, "last": past[-1], "ratio": self.value / base}
        change, limit = (self.value - base) / abs(base), self._limit(self._level)
        if not (math.isfinite(change) and math.isfinite(limit)):
            return Status.INSUFFICIENT_DATA, f"{self.shown}: numbers that cannot be compared"
        self.values["limit"] = limit
        worse = self._worse(change)
        if said is None or said.worse_before:
            return self._young(worse, limit)
        answer = self._by_gate(said)
        # From few runs, or a history of two levels, the gate believes anything to be an outlier, however far off,
        # and of the first runs of a level it says nothing at all.
        sure = said.held >= _GROWN * policy.detect.min_history
        if worse > (_FAR * limit if sure else limit) and answer[0] is not Status.REGRESSION:
            self.values.pop("confirm", None)
            return self._young(worse, limit)
        self.values["limit"] = policy.floor_of(self.name)
        return answer

    def _gate(self) -> Level:
        """What the gate of `tipcflow detect` says, with the metric's floor instead of its own."""
        rule = self.policy.detect.model_copy(update={"floor": self.policy.floor_of(self.name)})
        higher = self.known.better == "higher"
        return level_of(self.value, self.past, rule, higher_is_better=higher, confirm=self.confirm.value)

    def _worse(self, change: float) -> float:
        return {"lower": change, "higher": -change}.get(self.known.better, 0.0)

    def _limit(self, past: list[float]) -> float:
        """The relative change beyond which it is no longer noise."""
        base = median(past)
        spread = _MAD_TO_SIGMA * median(abs(one - base) for one in past) / abs(base)
        return max(self.policy.floor_of(self.name), (self.rule.z or self.policy.z) * spread)

    def _young(self, worse: float, limit: float) -> Answer:
        """While there are too few runs for the gate: a floor, robust standard deviations, and a second run."""
        if abs(worse) <= limit:
            return Status.PASS, f"{self.shown}, within {limit:.1%}"
        beyond = f"{self.shown}; {limit:.1%} would be noise"
        if worse < 0:
            return Status.IMPROVEMENT, beyond
        confirm = self.confirm.value
        if confirm is None:
            # Where there is none to be had, the run before stands for it.
            if (self.confirm.missing or not self.rule.gating) and self._confirmed_before():
                return Status.REGRESSION, f"{beyond}, and the run before was worse as well"
            return self._unconfirmed(beyond, worse, limit)
        told = f"the confirm run measured {amount(confirm, self.known.unit)}"
        if self._worse((confirm - self.base) / abs(self.base)) > limit:
            return Status.REGRESSION, f"{beyond}, and {told}"
        return Status.PASS, f"{self.shown}, but {told}: not confirmed"

    def _unconfirmed(self, beyond: str, worse: float, limit: float) -> Answer:
        """Doubted, and no confirm run has said anything: a question. Where none can, this run alone decides."""
        if not self.confirm.impossible:
            self.values["confirm"] = True
            return Status.INSUFFICIENT_DATA, f"{beyond}: {self.confirm.missing or _AGAIN}"
        alone = f"{beyond}; judged without a confirm run, {self.confirm.missing}"
        if worse > _ALONE * limit:
            return Status.REGRESSION, f"{alone}: more than {_ALONE * limit:.1%}"
        return Status.INSUFFICIENT_DATA, f"{alone}: up to {_ALONE * limit:.1%} the next run will tell"

    def _confirmed_before(self) -> bool:
        """Whether the run before was worse than its own predecessors, too: one slow run is no regression.

        Source of the rule: two in a row is what PyTorch's HUD asks for; a single run on a shared machine may be
        slow for reasons that nothing in that run shows.
        """
        last, level = self.past[-1], self._level
        before = level[:-1] if self._reaches else level
        if len(before) < self.policy.min_history or not (base := median(before)):
            return False
        return self._worse((last - base) / abs(base)) > self._limit(before)

    def _by_gate(self, said: Level) -> Answer:
        higher, base, confirm = self.known.better == "higher", self.base, self.confirm.value
        if said.alert is not None:
            one = said.alert
            self.values |= {"size": one.size, "confidence": one.confidence, "since": one.since}
            how = "confirmed" if one.confirmed else "over several runs"
            status = Status.REGRESSION if one.direction == "worse" else Status.IMPROVEMENT
            return status, f"{self.shown}; the level changed by {one.size:+.1%}, {how}"
        if not said.asked:
            return Status.PASS, f"{self.shown}, no change of level"
        if confirm is None:
            if (self.value > base) == higher:
                return Status.PASS, f"{self.shown}, better perhaps: further runs will tell"
            noise, limit = f"{self.shown}, more than this history's noise", self.values["limit"]
            return self._unconfirmed(noise, self._worse((self.value - base) / abs(base)), limit)
        told = f"{self.shown}, the confirm run measured {confirm / base:.3f} x"
        if (confirm - base) / (self.value - base or math.inf) >= _AGREES:
            return Status.INSUFFICIENT_DATA, f"{told}: not enough for this history's noise, one more run will tell"
        return Status.PASS, f"{told}: not confirmed"
