"""Is the run slower, bigger or worse than its accepted predecessors, by more than noise?"""

import math
from dataclasses import dataclass
from statistics import median
from typing import Any

from tipcflow.check.context import CheckContext
from tipcflow.check.level import level_of
from tipcflow.check.node_speed import node_factor
from tipcflow.check.select import amount, records
from tipcflow.config.policy import MetricRule, Policy
from tipcflow.domain import CheckResult, Facts, Status, StepKind, medians_of
from tipcflow.domain.metrics import Metric
from tipcflow.parse import metric

# Family of metrics -> prefix of the check's name.
_NAMES = {"speed": "speed", "memory": "memory", "quality": "baseline"}
# 1.4826 * MAD is the standard deviation of a normal distribution.
_MAD_TO_SIGMA = 1.4826
# What ended sooner was looked at by the node runner only a few times: its peak is a matter of luck.
_MEMORY_KNOWN_AFTER_S = 2.0
# Sums over ranks have names of their own (`medians_of`).
_ALL = ".all"


# A confirm run that shows less than this share of a change refutes it.
_AGREES = 0.5
_AGAIN = "run again to confirm or refute it"


@dataclass(frozen=True)
class _Confirm:
    """What the confirm run measured (None: nothing), and why there is no number."""

    value: float | None = None
    missing: str = ""


def against_baseline(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per (step, leg, metric) that the policy compares.

    With enough history it is the gate of `tipcflow detect` that says whether this run has left the level of those
    before it (`level`). While the history is young, a change counts when it exceeds both the floor and `z` robust
    standard deviations of the earlier runs' medians, and the run before or the confirm run shows it as well. What
    may be a change for the worse asks for a confirm run: `values["confirm"]`, and until there is one, a question.
    With too few runs the answer is `insufficient_data`, with the ratio to the last run for the reader. Steps and
    legs that did not end well are not compared: what they did is not the work that the baseline did. Of a speed,
    only what the node's own slowness (`node_speed`) does not explain counts. Preparing data is not judged.
    """
    slower = node_factor(facts, context)
    medians = medians_of(facts.measurements)
    return [
        _judged(facts, key, value, rule, context, slower)
        for key, value in medians.items()
        if (rule := context.policy.metrics.get(key.rpartition("|")[2].removesuffix(_ALL))) is not None
        # Where the ranks are known one by one, their sum says nothing new.
        and not (key.endswith(_ALL) and key.removesuffix(_ALL) in medians)
        and _comparable(facts, key)
    ]


def _confirm_of(key: str, context: CheckContext) -> _Confirm:
    told = context.confirmation
    if told is None:
        return _Confirm()
    value = told.medians.get(key)
    if value is None or not math.isfinite(value):
        return _Confirm(missing=f"the confirm run {told.run} {told.missing or 'did not measure it'}")
    return _Confirm(value)


def _comparable(facts: Facts, key: str) -> bool:
    step, leg, _ = key.split("|")
    status = facts.leg_status.get(f"{step}/{leg}") if leg else facts.step_status.get(step)
    preparing = any(one.id == step and one.kind is StepKind.PREPARE for one in facts.plan.steps)
    return status is Status.PASS and not preparing


def _judged(
    facts: Facts, key: str, value: float, rule: MetricRule, context: CheckContext, slower: float
) -> CheckResult:
    step, leg, name = key.split("|")
    known = metric(name.removesuffix(_ALL))
    past = [run.medians[key] for run in context.history if math.isfinite(run.medians.get(key, math.nan))]
    past = past[-context.policy.history :]
    values: dict[str, Any] = {
        "value": value,
        "unit": known.unit,
        "n": len(past),
        "needed": context.policy.min_history,
    }
    confirm = _confirm_of(key, context)
    status, reason = _answer(value, past, rule, known.name, context.policy, values, slower, confirm)
    seconds = max((record.duration_s for record in records(facts, step, leg)), default=_MEMORY_KNOWN_AFTER_S)
    if known.family == "memory" and seconds < _MEMORY_KNOWN_AFTER_S:
        status = Status.INSUFFICIENT_DATA
        reason = f"{amount(value, known.unit)}; it ran {seconds:.1f} s, too short for its peak to be known"
        values.pop("confirm", None)
    return CheckResult(
        check=f"{_NAMES.get(known.family, 'baseline')}.{known.name}",
        status=status,
        reason=reason,
        step=step,
        leg=leg,
        metric=known.name,
        gating=rule.gating,
        values=values,
    )


def _answer(
    value: float,
    past: list[float],
    rule: MetricRule,
    name: str,
    policy: Policy,
    values: dict[str, Any],
    slower: float,
    confirm: _Confirm,
) -> tuple[Status, str]:
    """(status, reason) of a median against those of earlier runs; adds the numbers to `values`."""
    known = metric(name)
    now = amount(value, known.unit)
    if not past or median(past) == 0:
        return Status.INSUFFICIENT_DATA, f"{now}; no earlier run to compare with"
    base = median(past)
    values |= {"baseline": base, "last": past[-1], "ratio": value / base}
    if len(past) < policy.min_history:
        ratio = f"{value / past[-1]:.3f} x the last run" if past[-1] else "the last run had 0"
        return Status.INSUFFICIENT_DATA, f"{now}, {ratio}; {len(past)} of {policy.min_history} earlier runs"
    limit = values["limit"] = _limit(past, base, rule, known.family, policy)
    shown = f"{now}, {value / base:.3f} x the baseline {amount(base, known.unit)} of {len(past)} runs"
    change = (value - base) / abs(base)
    if not (math.isfinite(change) and math.isfinite(limit)):
        return Status.INSUFFICIENT_DATA, f"{shown}: numbers that cannot be compared"
    worse = {"lower": change, "higher": -change}.get(known.better, 0.0)
    floor = floor_of(rule, known.family, policy)
    if len(past) >= policy.detect.min_history:
        limit = floor
        status, why = _by_gate(value, past, known.better == "higher", floor, policy, values, confirm)
    else:
        status, why = _young(past, worse, limit, rule, known, policy, values, confirm)
    doubted = status is Status.REGRESSION or values.get("confirm")
    if doubted and known.family == "speed" and _explained(value / base, limit, slower):
        values["node_factor"] = slower
        values.pop("confirm", None)
        why = f"but the node itself was {slower:.2f} x slower at reading data and starting processes"
        return Status.INSUFFICIENT_DATA, f"{shown}, {why}"
    return status, f"{shown}{why}"


def _young(
    past: list[float],
    worse: float,
    limit: float,
    rule: MetricRule,
    known: Metric,
    policy: Policy,
    values: dict[str, Any],
    confirm: _Confirm,
) -> tuple[Status, str]:
    """While there are too few runs for the gate: a floor, robust standard deviations, and a second run."""
    if abs(worse) <= limit:
        return Status.PASS, f", within {limit:.1%}"
    beyond = f"; {limit:.1%} would be noise"
    if worse < 0:
        return Status.IMPROVEMENT, beyond
    if _confirmed(past, rule, known.better, known.family, policy):
        return Status.REGRESSION, f"{beyond}, and the run before was worse as well"
    if confirm.value is None:
        values["confirm"] = True
        return Status.INSUFFICIENT_DATA, f"{beyond}: {confirm.missing or _AGAIN}"
    again = (confirm.value - median(past)) / abs(median(past)) * (1 if known.better == "lower" else -1)
    told = f"the confirm run measured {amount(confirm.value, known.unit)}"
    if again > limit:
        return Status.REGRESSION, f"{beyond}, and {told}"
    return Status.PASS, f", but {told}: not confirmed"


def _by_gate(
    value: float,
    past: list[float],
    higher: bool,
    floor: float,
    policy: Policy,
    values: dict[str, Any],
    confirm: _Confirm,
) -> tuple[Status, str]:
    """What the gate of `tipcflow detect` says, with the metric's floor instead of its own."""
    rule = policy.detect.model_copy(update={"floor": floor})
    said = level_of(value, past, rule, higher_is_better=higher, confirm=confirm.value)
    if said.alert is not None:
        values |= {"size": said.alert.size, "confidence": said.alert.confidence, "since": said.alert.since}
        worse = said.alert.direction == "worse"
        how = "confirmed" if said.alert.confirmed else "over several runs"
        status = Status.REGRESSION if worse else Status.IMPROVEMENT
        return status, f"; the level changed by {said.alert.size:+.1%}, {how}"
    if not said.asked:
        return Status.PASS, ", no change of level"
    if confirm.value is None:
        if (value > median(past)) == higher:
            return Status.PASS, ", better perhaps: further runs will tell"
        values["confirm"] = True
        return Status.INSUFFICIENT_DATA, f", more than this history's noise: {confirm.missing or _AGAIN}"
    told = f", the confirm run measured {confirm.value / median(past):.3f} x"
    if (confirm.value - median(past)) / (value - median(past) or math.inf) >= _AGREES:
        return Status.INSUFFICIENT_DATA, f"{told}: not enough for this history's noise, one more run will tell"
    return Status.PASS, f"{told}: not confirmed"


def _confirmed(past: list[float], rule: MetricRule, better: str, family: str, policy: Policy) -> bool:
    """Whether the run before was worse than its own predecessors, too: one slow run is no regression.

    Source of the rule: two in a row is what PyTorch's HUD asks for; a single run on a shared machine may be slow
    for reasons that nothing in that run shows.
    """
    last, before = past[-1], past[:-1]
    if len(before) < policy.min_history or not (base := median(before)):
        return False
    change = (last - base) / abs(base)
    worse = {"lower": change, "higher": -change}.get(better, 0.0)
    return worse > _limit(before, base, rule, family, policy)


def _explained(ratio: float, limit: float, slower: float) -> bool:
    """Whether a speed is within its limit once the node's own slowness is taken out of it."""
    cost = ratio if ratio > 1 else 1 / ratio if ratio > 0 else math.inf
    return cost / slower - 1 <= limit


def _limit(past: list[float], base: float, rule: MetricRule, family: str, policy: Policy) -> float:
    """The relative change beyond which it is no longer noise."""
    floor = floor_of(rule, family, policy)
    spread = _MAD_TO_SIGMA * median(abs(one - base) for one in past) / abs(base)
    return max(floor, policy.z * spread)


def floor_of(rule: MetricRule, family: str, policy: Policy) -> float:
    """The smallest relative change of a metric that counts: its own floor, else its family's."""
    floors = {"speed": policy.floors.speed, "memory": policy.floors.memory}
    return rule.floor or floors.get(family, policy.floors.quality)
