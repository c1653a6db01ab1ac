"""Does the last evaluation reach the model's target without being suspiciously high?"""

import math

from tipcflow.check.context import CheckContext
from tipcflow.check.select import first_names, format_number, training_steps
from tipcflow.config.references import Reference
from tipcflow.domain import CheckResult, Facts, Measurement, Phase, Status, StepKind, last_attempts
from tipcflow.parse import metric

NAME = "accuracy.final"
# Metrics that are shares of one, or per cent.
_SHARES = frozenset({"top1", "top5", "acc", "auc", "mIoU", "Kappa", "Dice", "Auc_roc", "mAP", "AP", "AP50"})
_SHARES |= {"AP75", "bbox_map", "precision", "recall", "hmean", "norm_edit_dis", "recall1", "recall5"}


def accuracy_final(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per target and trained variant; `insufficient_data` where the model has no target, and for a
    target of a variant that is not trained: it must not go unnoticed when a variant gets another name."""
    plan = facts.plan
    targets = context.references.of(plan.model, plan.mode) if context.references else ()
    if not plan.trains:
        return []
    if not targets:
        evaluated = _metrics(facts)
        listed = f" (metrics evaluated: {', '.join(evaluated)})" if evaluated else ""
        reason = f"no accuracy target configured for {plan.model} in {plan.mode}{listed}"
        values = {"evaluated": evaluated}
        return [CheckResult(check=NAME, status=Status.INSUFFICIENT_DATA, reason=reason, values=values)]
    variants = dict.fromkeys(step.variant for step in training_steps(facts))
    judged = [
        _judged(facts, target, variant, context)
        for variant in variants
        for target in targets
        if target.variant in ("", variant)
    ]
    return judged + [
        _without_variant(target, list(variants)) for target in targets if target.variant not in ("", *variants)
    ]


def _metrics(facts: Facts) -> list[str]:
    """What the run's evaluations logged and a target could be given for."""
    evaluated = {measurement.metric for measurement in facts.measurements if measurement.phase is Phase.EVAL}
    return sorted(name for name in evaluated if metric(name).family == "quality" and metric(name).better != "none")


def _without_variant(target: Reference, trained: list[str]) -> CheckResult:
    return CheckResult(
        check=NAME,
        status=Status.INSUFFICIENT_DATA,
        reason=(
            f"target for {target.metric} applies to variant {target.variant}; "
            f"trained variants: {first_names(trained) or 'none'}"
        ),
        metric=target.metric,
        values={"target": target.target, "variant": target.variant, "known": trained},
    )


def _judged(facts: Facts, target: Reference, variant: str, context: CheckContext) -> CheckResult:
    last = _last_evaluation(facts, target.metric, variant)
    values: dict[str, object] = {
        "target": target.target,
        "tolerance": target.tolerance,
        "unit": target.unit,
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
        return result(Status.INSUFFICIENT_DATA, f"{variant}: no evaluation logged {target.metric}")
    declared = context.prints.accuracy if target.metric in _SHARES else ""
    beyond = _beyond(last, declared, facts)
    if beyond is not None:
        limit = f"the suite file declares prints.accuracy {declared!r}: at most {100 if declared == '%' else 1}"
        return result(
            Status.FAILED, f"{target.metric} {format_number(beyond)} is not in the declared unit; {limit}"
        )
    value = _in_unit(last, target.unit, facts, declared)
    values["value"] = value
    if not math.isfinite(value):
        return result(Status.FAILED, f"{target.metric} is {value}")
    better = value - target.target if metric(target.metric).better != "lower" else target.target - value
    limits = f"{format_number(target.target)} ± {format_number(target.tolerance)}"
    shown = f"{target.metric} {format_number(value)}, target {limits}"
    # A value exactly at the limit passes, whatever the last bit of the subtraction.
    if better < -target.tolerance - 1e-9:
        return result(Status.FAILED, f"{shown}: too low" if metric(target.metric).better != "lower" else shown)
    if better > context.policy.accuracy.too_good * max(target.tolerance, 1e-12):
        if not declared and _may_be_per_cent(last, target.unit, facts):
            printed = format_number(last.value)
            both = f"{printed} is {format_number(value)} % as a share and {printed} % as per cent"
            hint = 'the log prints no unit; a target with unit "1" says that it is a share'
            return result(Status.UNCONFIRMED, f"{target.metric} {both}: {hint}")
        return result(Status.IMPROVEMENT, f"{shown}: suspiciously high: review before accepting")
    return result(Status.PASS, shown)


def _last_evaluation(facts: Facts, name: str, variant: str) -> Measurement | None:
    """What the variant's own evaluation step says, else the last evaluation inside its training."""
    for kind in (StepKind.EVAL, StepKind.TRAIN):
        steps = [step.id for step in facts.plan.steps if step.kind is kind and step.variant == variant]
        evaluations = [
            sample
            for sample in last_attempts(facts.measurements)
            if sample.step in steps and sample.phase is Phase.EVAL and sample.metric == name
        ]
        if evaluations:
            # Rank 0 (or no rank) speaks for the run: the others evaluate with their own batch statistics.
            lead = min(sample.rank for sample in evaluations)
            return max(
                (sample for sample in evaluations if sample.rank == lead),
                key=lambda sample: (steps.index(sample.step), sample.ordinal),
            )
    return None


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
    """Whether the run printed a value of the metric that is not a share of one: then all of them are per cent."""
    if metric(evaluation.metric).better != "higher":
        return False
    alike = (
        other.value
        for other in facts.measurements
        if (other.metric, other.unit) == (evaluation.metric, evaluation.unit)
    )
    return any(math.isfinite(value) and value > 1 + 1e-9 for value in alike)


def _may_be_per_cent(evaluation: Measurement, unit: str, facts: Facts) -> bool:
    """Whether a number without a unit, compared with per cent, may be either a share or per cent."""
    return unit == "%" and not evaluation.unit and not _beyond_one(evaluation, facts)
