"""Is the run slower, larger or less accurate than accepted earlier runs by more than noise?"""

import math
from collections.abc import Collection, Mapping

from tipcflow.check.baseline.attribution import Attribution, attribution_of
from tipcflow.check.baseline.changes import changed_since
from tipcflow.check.baseline.comparison import BaselineComparison, Confirm
from tipcflow.check.baseline.level import level_of
from tipcflow.check.baseline.small_part import negligible_reason
from tipcflow.check.context import CheckContext
from tipcflow.check.select import passed, printed_units, records, repeats_of
from tipcflow.config.policy import MetricRule, Policy
from tipcflow.domain import CheckResult, Facts, LegKey, MetricKey, Status, StepKind, numbers_of
from tipcflow.domain.keys import ALL, SLOWEST
from tipcflow.domain.numbers.measured import ValueKey
from tipcflow.domain.numbers.metrics import Scope, by_iteration, is_loss, objective, scope_of, training_speed
from tipcflow.domain.numbers.units import duration

# Family of metrics -> prefix of the check's name.
_NAMES = {"speed": "speed", "memory": "memory", "quality": "baseline"}
_ACCURACY = "accuracy.history"
_WORSE = (Status.REGRESSION, Status.UNCONFIRMED)
# The metrics whose rules hold for a training that prints others instead.
_SPEED, _LOSS = "batch_cost", "loss"
# Durations include the start, downloads, caches and evaluations; their smallest relative change that counts.
_DURATIONS, _COARSE = frozenset({"epoch_time", "wall_time"}), 0.25
# The node runner samples a shorter job only a few times, so its peak is random.
_MEMORY_KNOWN_AFTER_S = 2.0


def against_baseline(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per (step, leg, metric) that the policy compares; for memory by rank, the worst rank.

    A training without `batch_cost` is compared by the speed that it prints instead, or by its duration, and one
    without `loss` by its other losses: by the rules of `batch_cost` and `loss`.

    A regression is suspected if the change exceeds both the floor and `z` robust standard deviations of the
    earlier runs, or, with enough history, if the change-point detector reports it. A suspected regression
    requests a confirm run (`ValueKey.CONFIRM`) and is `unconfirmed` until that run confirms or refutes it.
    Without a confirm run only a change beyond twice the limit is a regression.
    With too few runs the status is `insufficient_data`, with the ratio to the last run for information. Failed
    steps and legs are not compared, because their work differs from that of the baseline. Slowdowns
    explained by a slow node (`node_health`) are excluded. Data preparation is not evaluated.
    """
    excuses, units = attribution_of(facts, context), printed_units(facts, context.prints.accuracy)
    numbers = numbers_of(sample for sample in facts.measurements if passed(facts, sample.step, sample.leg))
    ranked = {key.of(key.plain_metric) for key in numbers if key.rank is not None}
    results: dict[tuple[str, MetricKey], list[CheckResult]] = {}
    rules = _rules(facts, numbers, context)
    for key in numbers:
        instead = None if scope_of(key.metric) is Scope.EVALUATION else rules.get(key.of(key.plain_metric))
        rule = instead or context.policy.rule_of(key.metric)
        # If values per rank exist, their sum is redundant.
        summed = key.metric.endswith(ALL) and key.of(key.plain_metric) in ranked
        if rule is not None and not summed and not _prepares(facts, key):
            result = _judged(facts, key, numbers, rule, context, excuses, units)
            results.setdefault((result.check, key.of(key.plain_metric)), []).append(result)
    return [_worst(ranks) for ranks in results.values()]


def _rules(facts: Facts, numbers: Mapping[MetricKey, float], context: CheckContext) -> dict[MetricKey, MetricRule]:
    """Return the rules of metrics that replace `batch_cost` and `loss` in a training that has neither."""
    by_step: dict[str, set[str]] = {}
    for key in numbers:
        if not key.leg and key.metric == key.plain_metric:
            by_step.setdefault(key.step, set()).add(key.metric)
    rules: dict[MetricKey, MetricRule] = {}
    for step, names in by_step.items():
        if not any(repeat.kind is StepKind.TRAIN for repeat in repeats_of(facts, step)):
            continue
        for name, rule in {**_loss_rules(names, context), **_speed_rule(names, context.policy)}.items():
            rules[MetricKey(step, "", name)] = rule
    return rules


def _loss_rules(names: Collection[str], context: CheckContext) -> dict[str, MetricRule]:
    """Return the rules of the losses that replace `loss`; one that the policy names has its own rule."""
    losses = {name for name in names if _is_loss(name, context)}
    whole, rule = objective(losses), context.policy.metrics.get(_LOSS)
    if rule is None or whole == _LOSS:
        return {}
    # Losses without a total may oppose each other, as in a GAN: a change is shown.
    shown = rule.model_copy(update={"gating": rule.gating and bool(whole)})
    return dict.fromkeys(({whole} if whole else losses) - context.policy.metrics.keys(), shown)


def _speed_rule(names: Collection[str], policy: Policy) -> dict[str, MetricRule]:
    """Return the rule of the metric that replaces `batch_cost`.

    If the policy names the metric, its floor and `z` hold; `gating` is always that of `batch_cost`, because a
    policy that only shows `ips` relies on `batch_cost`.
    """
    name, rule = training_speed(names), policy.metrics.get(_SPEED)
    if rule is None or name in ("", _SPEED):
        return {}
    own = policy.metrics.get(name) or rule
    least = _COARSE if name in _DURATIONS else 0.0
    floor = max(own.floor or rule.floor or policy.floor_of(_SPEED), least)
    return {name: rule.model_copy(update={"floor": floor, "z": own.z or rule.z})}


def _is_loss(name: str, context: CheckContext) -> bool:
    return is_loss(name, context.prints.losses)


def _prepares(facts: Facts, key: MetricKey) -> bool:
    return any(step.kind is StepKind.PREPARE for step in repeats_of(facts, key.step))


def _worst(results: list[CheckResult]) -> CheckResult:
    """Return the result of the worst rank, with the values of all ranks."""
    if len(results) == 1:
        return results[0]

    def bad(result: CheckResult) -> tuple[int, bool, float]:
        return (
            result.status.severity,
            not result.measured.is_of_slowest,
            float(result.values[ValueKey.RATIO if ValueKey.RATIO in result.values else ValueKey.VALUE]),
        )

    worst = max(results, key=bad)
    if worst.measured.rank is None:
        # The median over ranks and the mean of the slowest rank; the former if both have the same status.
        confirm = any(result.measured.needs_confirm for result in results)
        return worst.model_copy(update={"values": worst.values | ({ValueKey.CONFIRM: True} if confirm else {})})
    ranks = {str(result.measured.rank): result.values[ValueKey.VALUE] for result in results}
    counted = [result for result in results if result.status is not Status.PASS]
    reason = f"rank {worst.measured.rank} of {len(results)}: {worst.reason}" if counted else worst.reason
    return worst.model_copy(update={"reason": reason, "values": {**worst.values, "ranks": ranks}})


def _judged(
    facts: Facts,
    key: MetricKey,
    numbers: Mapping[MetricKey, float],
    rule: MetricRule,
    context: CheckContext,
    excuses: Attribution,
    units: Mapping[MetricKey, str],
) -> CheckResult:
    value = numbers[key]
    confirm = _confirm_of(key, context)
    level = level_of(context.observed(key), key.metric, context.policy, rule=rule)
    about = key.metric, value, list(level.past), rule, context.policy, confirm
    comparison = BaselineComparison(*about, level=level)
    comparison.unit = units.get(key.of(key.plain_metric))
    if _is_loss(key.plain_metric, context):
        comparison.better = "lower"
    if key.rank is not None:
        comparison.values[ValueKey.RANK] = key.rank
    if lapsed := context.lapsed_reason(LegKey(key.step, key.leg)):
        comparison.lapsed, comparison.values[ValueKey.SEARCHED] = lapsed, context.searched
    status, reason = comparison.judge()
    if key.metric.endswith(SLOWEST):
        comparison.values[ValueKey.SLOWEST] = True
        reason = f"slowest rank, mean: {reason}"
    if status in (*_WORSE, Status.IMPROVEMENT):
        small = negligible_reason(key, value - comparison.base, rule, numbers, context)
        if small:
            comparison.values.pop(ValueKey.CONFIRM, None)
            status, reason = Status.PASS, f"{comparison.shown}, {small}"
    if status in _WORSE:
        excuse = excuses.node(key, comparison.cost, comparison.values[ValueKey.LIMIT])
        if excuse:
            comparison.values.pop(ValueKey.CONFIRM, None)
            comparison.values["explained_by"] = "node_health"
            # If a slow node does not make the run an infra_failure, the explained metric remains unknown.
            gating = context.policy.node_health.gating
            status = Status.INSUFFICIENT_DATA if gating else Status.UNCONFIRMED
            reason = f"{comparison.shown}, {excuse}"
    seconds = _seconds(facts, key.step, key.leg)
    if comparison.definition.family == "memory" and seconds < _MEMORY_KNOWN_AFTER_S:
        status = Status.INSUFFICIENT_DATA
        reason = f"{comparison.now}; ran {duration(seconds)}; too short for a peak value"
        comparison.values.pop(ValueKey.CONFIRM, None)
    if status in _WORSE and (changed := changed_since(key, facts, context, comparison.values.get(ValueKey.SINCE))):
        comparison.values["changed"] = changed
        reason = f"{reason}; {changed}"
    evaluated = scope_of(key.metric) is Scope.EVALUATION
    return CheckResult(
        check=_ACCURACY
        if evaluated
        else f"{_NAMES.get(comparison.definition.family, 'baseline')}.{comparison.definition.name}",
        status=status,
        reason=reason,
        step=key.step,
        leg=key.leg,
        metric=comparison.definition.name,
        gating=rule.gating,
        values=comparison.values,
    )


def _seconds(facts: Facts, step: str, leg: str) -> float:
    """Return the duration of the longest job of a step or leg."""
    ended = [record for repeat in repeats_of(facts, step) for record in records(facts, repeat.id, leg)]
    return max((record.duration_s for record in ended), default=_MEMORY_KNOWN_AFTER_S)


def _confirm_of(key: MetricKey, context: CheckContext) -> Confirm:
    by_mode = not by_iteration(key.plain_metric) and key.step not in context.evaluable
    confirmation = context.confirmation
    shown = confirmation is not None and confirmation.runs > 1 and key in confirmation.medians
    if context.unconfirmable and by_mode and not shown:
        return Confirm(missing=context.unconfirmable, impossible=True)
    if confirmation is None:
        return Confirm()
    if key.metric.endswith(SLOWEST) and key not in confirmation.medians:
        # A confirm run with few iterations has only the median.
        key = key.of(key.metric.removesuffix(SLOWEST))
    value, more = confirmation.medians.get(key), confirmation.more.get(key, ())
    known = value is not None and math.isfinite(value)
    missing = confirmation.last
    if not known or 1 + len(more) < confirmation.runs:
        why = confirmation.missing or "did not measure it"
        missing = f"the confirm run {confirmation.run} {why}" if confirmation.run else why
    return Confirm(value, missing, more=more) if known else Confirm(missing=missing)
