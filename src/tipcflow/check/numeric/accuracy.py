"""Does the last evaluation reach the model's target without being suspiciously high?"""

import math
from collections.abc import Collection

from tipcflow.check.context import CheckContext
from tipcflow.check.select import SHARES, format_amount, format_number, training_steps
from tipcflow.config.references import Reference
from tipcflow.domain import (
    CheckResult,
    Declared,
    Facts,
    Measurement,
    Phase,
    Status,
    Step,
    StepKind,
    last_attempts,
)
from tipcflow.domain.numbers.measured import ValueKey
from tipcflow.domain.numbers.units import first_names
from tipcflow.domain.quarantine.signature import ReasonCode
from tipcflow.domain.run.names import ChainName, ModeName
from tipcflow.domain.triggers import CONFIRM
from tipcflow.params.modes import BENCHMARK
from tipcflow.parse import metric

NAME = "accuracy.final"


def accuracy_final(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per target and trained variant (of a plan that does not train: evaluated variant), `failed` where
    nothing measured the target; `insufficient_data` where the model has no target. One per target of a variant
    that the plan does not have."""
    plan = facts.plan
    params = ChainName.parse(context.run.chain).file if context.run else ""
    targets = context.references.of(plan.model, plan.mode, params=params) if context.references else ()
    measured = training_steps(facts) if plan.trains else _evaluations(facts)
    if not plan.trains and not measured:
        return []
    if not targets:
        evaluated = _metrics(facts)
        listed = f" (metrics evaluated: {', '.join(evaluated)})" if evaluated else ""
        reason = f"no accuracy target configured for {plan.model} in {plan.mode}{listed}"
        values = {"evaluated": evaluated}
        return [CheckResult(check=NAME, status=Status.INSUFFICIENT_DATA, reason=reason, values=values)]
    variants = list(dict.fromkeys(step.variant for step in measured))
    judged = [
        _judged(facts, target, variant, context)
        for variant in variants
        for target in targets
        if target.variant in ("", variant)
    ]
    covered = {target.metric for target in targets if target.variant in ("", *variants)}
    others = [target for target in targets if target.variant not in ("", *variants)]
    return judged + [_without_variant(facts, target, variants, covered, context) for target in others]


def _evaluations(facts: Facts) -> tuple[Step, ...]:
    return tuple(step for step in facts.plan.steps if step.kind is StepKind.EVAL and not step.not_run)


def _metrics(facts: Facts) -> list[str]:
    """What the run's evaluations logged and a target could be given for."""
    evaluated = {measurement.metric for measurement in facts.measurements if measurement.phase is Phase.EVAL}
    return sorted(name for name in evaluated if metric(name).family == "quality" and metric(name).better != "none")


def _without_variant(
    facts: Facts, target: Reference, measured: list[str], covered: Collection[str], context: CheckContext
) -> CheckResult:
    """A target that nothing measures because its variant no longer exists: `failed`.

    `insufficient_data` for what explains it: the cluster cannot run the variant, a confirm run leaves it out, or
    another target of the metric applies. Params files of the same model have variants and targets of their own.
    """
    name, declared = target.variant, Declared.of(facts.run, facts.plan).variants
    before = context.before.variants if context.before else ()
    is_removed = name not in declared and (name in before or target.metric not in covered)
    is_removed &= not _is_partial(facts, context)
    where = f"references/{facts.plan.suite}.yaml"
    verb = "trained" if facts.plan.trains else "evaluated"
    reason = (
        f"target for {target.metric} applies to variant {name}; {verb} variants: {first_names(measured) or 'none'}"
    )
    if is_removed:
        reason = f"{reason}; nothing measured the target: correct or remove it in {where}, or set its params"
    return CheckResult(
        check=NAME,
        status=Status.FAILED if is_removed else Status.INSUFFICIENT_DATA,
        reason=reason,
        metric=target.metric,
        values={ValueKey.TARGET: target.target, "variant": name, "known": measured},
    )


def _is_partial(facts: Facts, context: CheckContext) -> bool:
    """Whether the run leaves evaluations out on purpose: a confirm run does, and a benchmark, whose variants are
    topologies, does not evaluate."""
    confirms = context.run is not None and context.run.trigger == CONFIRM
    return confirms or ModeName.parse(facts.plan.mode).mode == BENCHMARK


def _judged(facts: Facts, target: Reference, variant: str, context: CheckContext) -> CheckResult:
    last = _last_evaluation(facts, target.metric, variant)
    values: dict[str, object] = {
        ValueKey.TARGET: target.target,
        ValueKey.TOLERANCE: target.tolerance,
        ValueKey.UNIT: target.unit,
        "because": target.because,
    }
    step = last.step if last else ""

    def result(status: Status, reason: str) -> CheckResult:
        return CheckResult(
            check=NAME, status=status, reason=reason, step=step, metric=target.metric, values=values
        )

    if last is None and (evaluated := _evaluated(facts, variant)):
        step = evaluated
        return result(Status.FAILED, f"{evaluated} passed, but logged no {target.metric}, which has a target")
    if last is None:
        unmeasured = f"{variant}: no evaluation logged {target.metric}"
        if not _should_be_measured(facts, variant, context):
            return result(Status.INSUFFICIENT_DATA, unmeasured)
        limit = f"{format_number(target.target)} ± {format_number(target.tolerance)}"
        return result(Status.FAILED, f"{unmeasured}, which has the target {limit}; the training passed")
    declared = context.prints.accuracy if target.metric in SHARES else ""
    beyond = _beyond(last, declared, facts)
    if beyond is not None:
        limit = f"the suite file declares prints.accuracy {declared!r}: at most {100 if declared == '%' else 1}"
        return result(
            Status.FAILED, f"{target.metric} {format_number(beyond)} is not in the declared unit; {limit}"
        )
    value = _in_unit(last, target.unit, facts, declared)
    values[ValueKey.VALUE] = value
    if not math.isfinite(value):
        return result(Status.FAILED, f"{target.metric} is {value}")
    better = value - target.target if metric(target.metric).better != "lower" else target.target - value
    unit = "%" if target.unit == "%" else ""
    limits = f"{format_number(target.target)} ± {format_amount(target.tolerance, unit)}"
    shown = f"{target.metric} {_converted(value, last.value, target.unit)}, target {limits}"
    # A value exactly at the limit passes, whatever the last bit of the subtraction.
    if better < -target.tolerance - 1e-9:
        values[ValueKey.CODE] = ReasonCode.BEYOND_TARGET
        return result(Status.FAILED, f"{shown}: too low" if metric(target.metric).better != "lower" else shown)
    if better > context.policy.accuracy.too_good * max(target.tolerance, 1e-12):
        if not declared and _may_be_per_cent(last, target.unit, facts):
            values[ValueKey.CODE] = ReasonCode.AMBIGUOUS_UNIT
            printed = format_number(last.value)
            both = f"{printed} is {format_number(value)} % as a fraction and {printed} % as a percentage"
            hint = 'the log prints no unit; a target with unit "1" marks it as a fraction'
            return result(Status.UNCONFIRMED, f"{target.metric} {both}: {hint}")
        return result(Status.IMPROVEMENT, f"{shown}: suspiciously high: review before accepting")
    return result(Status.PASS, shown)


def _converted(value: float, logged: float, unit: str) -> str:
    """A value in the unit of its target, with the logged value where the log has the other unit."""
    own, other = ("%", "") if unit == "%" else ("", "%")
    shown = format_amount(value, own)
    return (
        shown
        if value == logged or not math.isfinite(value)
        else f"{shown} ({format_amount(logged, other)} in the log)"
    )


def _last_evaluation(facts: Facts, name: str, variant: str) -> Measurement | None:
    """The result of the variant's own evaluation step, otherwise of the last evaluation inside its training."""
    for kind in (StepKind.EVAL, StepKind.TRAIN):
        steps = [step.id for step in facts.plan.steps if step.kind is kind and step.variant == variant]
        evaluations = [
            sample
            for sample in last_attempts(facts.measurements)
            if sample.step in steps and sample.phase is Phase.EVAL and sample.metric == name
        ]
        if evaluations:
            # Only rank 0 (or no rank) counts for the run: the others evaluate with their own batch statistics.
            lead = min(sample.rank for sample in evaluations)
            return max(
                (sample for sample in evaluations if sample.rank == lead),
                key=lambda sample: (steps.index(sample.step), sample.ordinal),
            )
    return None


def _should_be_measured(facts: Facts, variant: str, context: CheckContext) -> bool:
    """Whether the variant's training passed and nothing explains that no evaluation followed: an evaluation step
    has a status of its own."""
    if _is_partial(facts, context):
        return False
    steps = [step for step in facts.plan.steps if step.variant == variant]
    trainings = [step for step in steps if step.kind is StepKind.TRAIN and not step.not_run]
    passed = bool(trainings) and all(facts.step_status.get(step.id) is Status.PASS for step in trainings)
    return passed and not any(step.kind is StepKind.EVAL for step in steps)


def _evaluated(facts: Facts, variant: str) -> str:
    """The id of the variant's evaluation step that passed, '' when there is none."""
    steps = [step for step in facts.plan.steps if step.kind is StepKind.EVAL and step.variant == variant]
    return next((step.id for step in steps if facts.step_status.get(step.id) is Status.PASS), "")


def _beyond(evaluation: Measurement, declared: str, facts: Facts) -> float | None:
    """The first value of the metric in the run that cannot have the declared unit; None if there is none."""
    if not declared:
        return None
    most = 100.0 if declared == "%" else 1.0
    alike = (other.value for other in facts.measurements if other.metric == evaluation.metric)
    return next((value for value in alike if math.isfinite(value) and value > most + 1e-9), None)


def _in_unit(evaluation: Measurement, unit: str, facts: Facts, declared: str) -> float:
    per_cent = (
        declared == "%"
        if declared
        else evaluation.unit == "%" or (not evaluation.unit and _beyond_one(evaluation, facts))
    )
    if per_cent and unit == "1":
        return evaluation.value / 100
    return evaluation.value * 100 if not per_cent and unit == "%" else evaluation.value


def _beyond_one(evaluation: Measurement, facts: Facts) -> bool:
    """Whether the run printed a value of the metric that is not a fraction: then all of them are percentages."""
    if metric(evaluation.metric).better != "higher":
        return False
    alike = (
        other.value
        for other in facts.measurements
        if (other.metric, other.unit) == (evaluation.metric, evaluation.unit)
    )
    return any(math.isfinite(value) and value > 1 + 1e-9 for value in alike)


def _may_be_per_cent(evaluation: Measurement, unit: str, facts: Facts) -> bool:
    """Whether a number without a unit, compared with a percentage, may be either a fraction or a percentage."""
    return unit == "%" and not evaluation.unit and not _beyond_one(evaluation, facts)
