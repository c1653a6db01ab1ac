"""Is the run slower, larger or less accurate than accepted earlier runs by more than noise?"""

import math
from collections.abc import Mapping

from tipcflow.check.baseline.attribution import Excuses, excuses_of
from tipcflow.check.baseline.changes import changed_since
from tipcflow.check.baseline.comparison import Confirm, Question
from tipcflow.check.baseline.small_part import too_small
from tipcflow.check.context import CheckContext
from tipcflow.check.select import amount, passed, records, repeats_of
from tipcflow.config.policy import MetricRule
from tipcflow.domain import CheckResult, Facts, Status, StepKind, numbers_of, plain_metric
from tipcflow.domain.numbers.metrics import by_iteration

# Family of metrics -> prefix of the check's name.
_NAMES = {"speed": "speed", "memory": "memory", "quality": "baseline"}
_ACCURACY = "accuracy.history"
_WORSE = (Status.REGRESSION, Status.UNCONFIRMED)
# The node runner samples a shorter job only a few times, so its peak is random.
_MEMORY_KNOWN_AFTER_S = 2.0


def against_baseline(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per (step, leg, metric) that the policy compares; for memory by rank, the worst rank.

    A regression is suspected if the change exceeds both the floor and `z` robust standard deviations of the
    earlier runs, or, with enough history, if the change-point detector reports it. A suspected regression
    requests a confirm run (`values["confirm"]`) and is `unconfirmed` until that run confirms or refutes it.
    Without a confirm run only a change beyond twice the limit is a regression.
    With too few runs the status is `insufficient_data`, with the ratio to the last run for information. Failed
    steps and legs are not compared, because their work differs from that of the baseline. Slowdowns
    explained by a slow node (`node_health`) are excluded. Data preparation is not evaluated.
    """
    excuses = excuses_of(facts, context)
    numbers = numbers_of(one for one in facts.measurements if passed(facts, one.step, one.leg))
    ranked = {_plain_key(key) for key in numbers if ".rank" in key}
    found: dict[str, list[CheckResult]] = {}
    for key in numbers:
        rule = context.policy.rule_of(key.rpartition("|")[2])
        # If values per rank exist, their sum is redundant.
        summed = key.endswith(".all") and _plain_key(key) in ranked
        if rule is not None and not summed and not _prepares(facts, key):
            said = _judged(facts, key, numbers, rule, context, excuses)
            found.setdefault(f"{said.check}|{_plain_key(key)}", []).append(said)
    return [_worst(several) for several in found.values()]


def _plain_key(key: str) -> str:
    about, _, name = key.rpartition("|")
    return f"{about}|{plain_metric(name)}"


def _prepares(facts: Facts, key: str) -> bool:
    return any(one.kind is StepKind.PREPARE for one in repeats_of(facts, key.split("|")[0]))


def _worst(several: list[CheckResult]) -> CheckResult:
    """Return the result of the worst rank, with the values of all ranks."""
    if len(several) == 1:
        return several[0]

    def bad(one: CheckResult) -> tuple[int, float]:
        return one.status.severity, float(one.values.get("ratio", one.values["value"]))

    worst = max(several, key=bad)
    ranks = {str(one.values["rank"]): one.values["value"] for one in several}
    counted = [one for one in several if one.status is not Status.PASS]
    reason = f"rank {worst.values['rank']} of {len(several)}: {worst.reason}" if counted else worst.reason
    return worst.model_copy(update={"reason": reason, "values": {**worst.values, "ranks": ranks}})


def _judged(
    facts: Facts,
    key: str,
    numbers: Mapping[str, float],
    rule: MetricRule,
    context: CheckContext,
    excuses: Excuses,
) -> CheckResult:
    (step, leg, name), value = key.split("|"), numbers[key]
    asked = Question(name, value, context.past(key), rule, context.policy, _confirm_of(key, context))
    if ".rank" in name:
        asked.values["rank"] = int(name.rpartition(".rank")[2])
    status, reason = asked.answer()
    if status in (*_WORSE, Status.IMPROVEMENT):
        small = too_small(key, value - asked.base, rule, numbers, context)
        if small:
            asked.values.pop("confirm", None)
            status, reason = Status.PASS, f"{asked.shown}, {small}"
    if status in _WORSE:
        excuse = excuses.node(key, asked.cost, asked.values["limit"])
        if excuse:
            asked.values.pop("confirm", None)
            asked.values["explained_by"] = "node_health"
            # If a slow node does not make the run an infra_failure, the explained metric remains unknown.
            known = context.policy.node_health.gating
            status = Status.INSUFFICIENT_DATA if known else Status.UNCONFIRMED
            reason = f"{asked.shown}, {excuse}"
    seconds = _seconds(facts, step, leg)
    if asked.known.family == "memory" and seconds < _MEMORY_KNOWN_AFTER_S:
        status = Status.INSUFFICIENT_DATA
        reason = f"{amount(value, asked.known.unit)}; it ran {seconds:.1f} s, too short for its peak to be known"
        asked.values.pop("confirm", None)
    if status in _WORSE and (changed := changed_since(key, facts, context, asked.values.get("since"))):
        asked.values["changed"] = changed
        reason = f"{reason}; {changed}"
    evaluated = name.startswith("eval.")
    return CheckResult(
        check=_ACCURACY if evaluated else f"{_NAMES.get(asked.known.family, 'baseline')}.{asked.known.name}",
        status=status,
        reason=reason,
        step=step,
        leg=leg,
        metric=asked.known.name,
        gating=rule.gating,
        values=asked.values,
    )


def _seconds(facts: Facts, step: str, leg: str) -> float:
    """Return the duration of the longest job of a step or leg."""
    ended = [one for each in repeats_of(facts, step) for one in records(facts, each.id, leg)]
    return max((record.duration_s for record in ended), default=_MEMORY_KNOWN_AFTER_S)


def _confirm_of(key: str, context: CheckContext) -> Confirm:
    by_mode = not by_iteration(plain_metric(key.rpartition("|")[2])) and key.split("|")[0] not in context.evaluable
    if context.unconfirmable and by_mode:
        return Confirm(missing=context.unconfirmable, impossible=True)
    told = context.confirmation
    if told is None:
        return Confirm()
    value = told.medians.get(key)
    if value is None or not math.isfinite(value):
        return Confirm(missing=f"the confirm run {told.run} {told.missing or 'did not measure it'}")
    return Confirm(value)
