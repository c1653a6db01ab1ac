"""Comparison of a metric value with accepted earlier runs: status and reason."""

import math
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tipcflow.check.baseline.level import Level, level_of, limit_of
from tipcflow.check.detect import Alert
from tipcflow.check.select import format_amount
from tipcflow.config.policy import MetricRule, Policy
from tipcflow.domain import Status, plain_metric
from tipcflow.domain.numbers.measured import ValueKey
from tipcflow.domain.numbers.metrics import Better, Metric, metric
from tipcflow.domain.numbers.units import percent, percentage

# A confirm run that shows less than this share of a change refutes it.
_AGREES = 0.5
# A change beyond this multiple of the limit needs no confirm run.
_ALONE = 2
# Within the limit, but beyond this many robust standard deviations: too far for an unconfirmed pass.
_STRONG = 3.0
# Times that a log may round to 0.
_ROUNDED = frozenset({"reader_cost", "preprocess_time", "postprocess_time"})
# A value of 0 and one of this size differ by the last digit that a log prints.
_DIGIT, _DIGIT_S = 1e-5, 1e-3
# Memory of a device that the run may not use.
_UNUSED = frozenset({"peak_gpu", "gpu_rss", "max_mem_reserved", "max_mem_allocated"})
_AGAIN = "run again to confirm or refute it"

Judged = tuple[Status, str]


@dataclass(frozen=True)
class Confirm:
    """What confirm runs measured.

    Attributes:
        value: the first one's value; None: nothing.
        missing: why it, or a further one, is missing.
        impossible: whether no confirm run can measure the metric.
        more: values of further ones.
    """

    value: float | None = None
    missing: str = ""
    impossible: bool = False
    more: tuple[float, ...] = ()

    @property
    def values(self) -> tuple[float, ...]:
        """All values."""
        return () if self.value is None else (self.value, *self.more)


@dataclass
class BaselineComparison:
    """Is this value worse than those of earlier runs?

    Attributes:
        name: key of `numbers_of`.
        past: finite values of accepted runs, oldest first.
        values: numbers for the check result; includes `confirm` while a confirm run is requested.
        better, unit: override the metric's definition.
        level: of `past`; computed by the policy unless given.
        lapsed: why there are few earlier runs although older ones exist; '' if none do.
    """

    name: str
    value: float
    past: list[float]
    rule: MetricRule
    policy: Policy
    confirm: Confirm
    values: dict[str, Any] = field(default_factory=dict)
    better: Better | None = None
    unit: str | None = None
    level: Level | None = None
    lapsed: str = ""
    _level: Level = field(init=False)

    def __post_init__(self) -> None:
        higher = self._better == "higher"
        self._level = self.level or level_of(
            self.past, self.name, self.policy, higher_is_better=higher, rule=self.rule
        )

    @property
    def definition(self) -> Metric:
        """The definition of the metric."""
        return metric(plain_metric(self.name))

    @property
    def _better(self) -> Better:
        return self.better or self.definition.better

    @property
    def _unit(self) -> str:
        return self.definition.unit if self.unit is None else self.unit

    def amount(self, value: float) -> str:
        """Return a value with its unit."""
        return format_amount(value, self._unit)

    @property
    def base(self) -> float:
        """The median of the earlier runs; after a change point, of the runs of the current level."""
        return self._level.base

    @property
    def now(self) -> str:
        """The value with its unit."""
        return self.amount(self.value)

    @property
    def shown(self) -> str:
        """The value and its baseline."""
        if self.base == 0:
            return f"{self.now}; the baseline of {len(self._level.runs)} runs is 0"
        ratio = f"{self.value / self.base:.3f} x the baseline {self.amount(self.base)}"
        return f"{self.now}, {ratio} of {len(self._level.runs)} runs"

    @property
    def cost(self) -> float:
        """How many times worse than the baseline."""
        if self.base == 0:
            return math.inf
        if self._better == "lower":
            return self.value / self.base
        return self.base / self.value if self.value > 0 else math.inf

    def judge(self) -> Judged:
        """(status, reason)."""
        past, needed = self._level.past, self.policy.min_history
        self.values |= {
            ValueKey.VALUE: self.value,
            ValueKey.UNIT: self._unit,
            ValueKey.N: len(past),
            ValueKey.NEEDED: needed,
        }
        if self._no_measurement():
            return Status.FAILED, f"{self.now} is not a measurement: {self.definition.name} is above 0"
        lapsed = f"; {self.lapsed}" if self.lapsed else ""
        if not past:
            return Status.INSUFFICIENT_DATA, f"{self.now}; 0 of {needed} earlier runs for a comparison{lapsed}"
        if len(past) < needed:
            ratio = f"{self.value / past[-1]:.3f} x the last run" if past[-1] else "previous value was 0"
            ratio = "same as the last run" if self.value == past[-1] else ratio
            known = f"{len(past)} of {needed} earlier runs for a comparison"
            return Status.INSUFFICIENT_DATA, f"{self.now}, {ratio}; {known}{lapsed}"
        level, base = self._level, self.base
        self.values[ValueKey.N] = len(level.runs)
        if base == 0:
            return self._from_zero()
        self.values |= {ValueKey.BASELINE: base, ValueKey.LAST: past[-1], ValueKey.RATIO: self.value / base}
        worse, limit = self._worse(self.value), level.limit
        if math.isfinite(level.sigma):
            self.values[ValueKey.SIGMA] = level.sigma
        if not (math.isfinite(worse) and math.isfinite(limit)):
            return Status.INSUFFICIENT_DATA, f"{self.shown}: values that cannot be compared"
        self.values[ValueKey.LIMIT] = limit
        return self._judged(worse, limit)

    def _from_zero(self) -> Judged:
        """All or most earlier runs had 0: no ratio exists. A value for the worse is suspected if it is larger
        than all of theirs, and by more than the floor where they differ."""
        exact, digit = self._level.exact, _DIGIT_S if self.definition.name in _ROUNDED else _DIGIT
        if abs(self.value) <= digit and exact:
            return Status.PASS, f"{self.shown}; the difference is a rounded digit"
        better = {"lower": self.value <= 0, "higher": self.value >= 0}.get(self._better, True)
        if better:
            equal = self.value == 0 and exact
            return (Status.PASS if equal else Status.INSUFFICIENT_DATA), self.shown
        limit = max(digit, max(map(abs, self._level.past)) * (1 + self._level.floor))
        if abs(self.value) <= limit:
            return Status.INSUFFICIENT_DATA, f"{self.shown}, and its runs differ"
        shown = self.shown if exact else f"{self.shown}, and at most {self.amount(limit)}"
        self.values[ValueKey.LIMIT] = 0.0
        again, missing = self.confirm.value, self.confirm.missing
        if again is None and not self.confirm.impossible:
            self.values[ValueKey.CONFIRM] = True
            if not missing and self.rule.gating:
                return Status.UNCONFIRMED, f"{shown}: {_AGAIN}"
        if again is None:
            missing = missing or "no confirm run requested"
            if exact or abs(self.value) > _ALONE * limit:
                return Status.REGRESSION, f"{shown} ({missing})"
            return Status.UNCONFIRMED, f"{shown}; not confirmed: {missing}"
        refuted = again == 0 or (again > 0) != (self.value > 0) or (abs(again) <= limit and not exact)
        if refuted:
            return Status.PASS, f"{shown}, but the confirm run measured {self.amount(again)}: not confirmed"
        return Status.REGRESSION, f"{shown}, and the confirm run measured {self.amount(again)}"

    def _no_measurement(self) -> bool:
        """Whether the value cannot be a measurement: work takes time and memory."""
        if self.value > 0 or self.definition.family not in ("speed", "memory"):
            return False
        if self.value < 0:
            return True
        unused = self.definition.name in _UNUSED and not any(self._level.past)
        return not (unused or self.definition.name in _ROUNDED)

    def _worse(self, value: float) -> float:
        """The relative change for the worse; negative if the value is better."""
        change = (value - self.base) / abs(self.base)
        return {"lower": change, "higher": -change}.get(self._better, 0.0)

    def _judged(self, worse: float, limit: float) -> Judged:
        look = self._level.look(self.value, self.confirm.value, self.confirm.more)
        if look.alert is not None and not self._confirmable(look.alert, worse):
            return self._moved(look.alert)
        if worse > limit or (look.confirm_requested and worse > 0):
            return self._doubted(worse, limit)
        if worse >= -limit and not look.confirm_requested:
            return Status.PASS, f"{self.shown}, within {percentage(limit)}"
        alone = self._level.gate is None or self._level.worse_before or self._level.exact
        if worse < -limit and alone:
            return Status.IMPROVEMENT, f"{self.shown}; limit {percentage(limit)}"
        return Status.PASS, f"{self.shown}, possible improvement; more runs required"

    def _confirmable(self, alert: Alert, worse: float) -> bool:
        """Whether a confirm run is to decide about a change for the worse that several runs show."""
        confirm = self.confirm
        known = alert.confirmed or confirm.missing or confirm.impossible
        return alert.direction == "worse" and worse > 0 and self.rule.gating and not known

    def _moved(self, alert: Alert) -> Judged:
        """The change-point detector reports a change."""
        if alert.direction == "worse" and alert.confirmed and self._needs_another():
            return self._another(f"{self.shown}; the level changed by {percent(alert.size)}")
        self.values |= {
            ValueKey.SIZE: alert.size,
            ValueKey.CONFIDENCE: alert.confidence,
            ValueKey.SINCE: alert.since,
        }
        how = f"and {self._measured}{self._fewer}" if alert.confirmed else "over several runs"
        status = Status.REGRESSION if alert.direction == "worse" else Status.IMPROVEMENT
        return status, f"{self.shown}; the level changed by {percent(alert.size)}, {how}"

    def _doubted(self, worse: float, limit: float) -> Judged:
        """Worse than noise explains: the confirm run decides; without one, the reason states it."""
        noise = f"limit {percentage(limit)}" if worse > limit else "more than this history's noise"
        beyond = f"{self.shown}; {noise}"
        if self.confirm.value is None:
            return self._unconfirmed(beyond, worse, limit)
        changes, measured = list(map(self._worse, self.confirm.values)), self._measured
        count, shown = len(changes), self._shown
        if min(worse, *changes) > limit:
            if self._needs_another():
                return self._another(beyond)
            return Status.REGRESSION, f"{beyond}, and {measured}{self._fewer}"
        if 2 * shown < count:
            return Status.PASS, f"{self.shown}, but {measured}: not confirmed"
        if not self._strong(worse):
            both = f", and {measured}: both within {percentage(limit)}"
            return (
                Status.PASS,
                f"{self.shown}{both if count == 1 else f', within {percentage(limit)}; {measured}'}",
            )
        if 2 * shown == count and self._needs_another():
            return self._another(beyond)
        part = (
            f"only part of the change, {percentage(changes[0])} worse"
            if count == 1
            else f"shown by {shown} of {count}"
        )
        return Status.UNCONFIRMED, f"{beyond}, and {measured}: {part}"

    @property
    def _shown(self) -> int:
        """How many confirm runs show at least half of the change."""
        least = _AGREES * self._worse(self.value)
        return sum(self._worse(value) >= least for value in self.confirm.values)

    @property
    def _measured(self) -> str:
        """The values of the confirm runs."""
        values = self.confirm.values
        which = "the confirm run" if len(values) == 1 else f"{len(values)} confirm runs"
        return f"{which} measured {', '.join(map(self.amount, values))}"

    @property
    def _fewer(self) -> str:
        """Why fewer confirm runs than the policy requires decide; '' if all of them did."""
        count, wanted, missing = len(self.confirm.values), self.policy.confirm_runs, self.confirm.missing
        return f" (only {count} of {wanted}: {missing})" if missing and count < wanted else ""

    def _unconfirmed(self, beyond: str, worse: float, limit: float) -> Judged:
        """Neither confirmed nor refuted: request a confirm run if one is available."""
        missing = self.confirm.missing
        if not self.confirm.impossible:
            self.values[ValueKey.CONFIRM] = True
            if not missing and self.rule.gating:
                return Status.UNCONFIRMED, f"{beyond}: {_AGAIN}"
        missing = missing or "no confirm run requested"
        if worse > _ALONE * limit:
            return (
                Status.REGRESSION,
                f"{beyond}; more than {percentage(_ALONE * limit)} needs no confirm run ({missing})",
            )
        if worse > limit and self._level.exact and self.definition.family == "quality":
            return Status.REGRESSION, f"{beyond}; all {len(self._level.runs)} earlier runs are equal ({missing})"
        if self._confirmed_before():
            return Status.REGRESSION, f"{beyond}; previous run also beyond the limit ({missing})"
        if not self._strong(worse):
            return Status.PASS, f"{self.shown}, within {percentage(limit)}"
        return Status.UNCONFIRMED, f"{beyond}; not confirmed: {missing}"

    def _needs_another(self) -> bool:
        """Whether the policy has a further confirm run, and one can be requested."""
        confirm = self.confirm
        known = bool(confirm.missing) or confirm.impossible or self._level.exact or not self.rule.gating
        return 0 < len(confirm.values) < self.policy.confirm_runs and not known

    def _another(self, beyond: str) -> Judged:
        """Confirm runs show the change, or disagree: request a further one."""
        count, shown, wanted = len(self.confirm.values), self._shown, self.policy.confirm_runs
        self.values |= {ValueKey.CONFIRM: True, ValueKey.CONFIRMED_BY: shown}
        so_far = f", shown by {count} of {wanted} confirm runs"
        return Status.UNCONFIRMED, f"{beyond}{so_far if shown == count else f', and {self._measured}'}: {_AGAIN}"

    def _strong(self, worse: float) -> bool:
        """Whether a change is too large to pass unless it is refuted."""
        return worse > limit_of(self._level.steady, self._level.floor, min(_STRONG, self._level.z), base=self.base)

    def _confirmed_before(self) -> bool:
        """Whether the previous run was also worse than its predecessors: one slow run is not a regression.

        Source of the rule: PyTorch's HUD requires two in a row; a single run on a shared machine may be
        slow for reasons that the run does not show.
        """
        before = self._level.before_last
        if len(before) < self.policy.min_history or not (base := median(before)):
            return False
        change = (self._level.past[-1] - base) / abs(base)
        worse = {"lower": change, "higher": -change}.get(self._better, 0.0)
        return worse > limit_of(before, self._level.floor, self._level.z)
