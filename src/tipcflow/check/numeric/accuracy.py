"""Does the last evaluation reach the model's target without being suspiciously high?"""

import math

from tipcflow.check.context import CheckContext
from tipcflow.check.select import number, some, training_steps
from tipcflow.config.references import Reference
from tipcflow.domain import CheckResult, Facts, Measurement, Phase, Status, StepKind, last_attempts
from tipcflow.parse import metric

NAME = "accuracy.final"


def accuracy_final(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per target and trained variant; `insufficient_data` where the model has no target, and for a
    target of a variant that is not trained: it must not go unnoticed when a variant gets another name."""
    plan = facts.plan
    targets = context.references.of(plan.model, plan.mode) if context.references else ()
    if not plan.trains:
        return []
    if not targets:
        evaluated = _metrics(facts)
        missing = f": 1 is missing, for one of {', '.join(evaluated)}" if evaluated else ""
        reason = f"no target stands in the references for {plan.model} in {plan.mode}{missing}"
        values = {"evaluated": evaluated}
        return [CheckResult(check=NAME, status=Status.INSUFFICIENT_DATA, reason=reason, values=values)]
    variants = dict.fromkeys(step.variant for step in training_steps(facts))
    judged = [
        _judged(facts, target, variant, context)
        for variant in variants
        for target in targets
        if target.variant in ("", variant)
    ]
    return judged + [_nobodys(one, list(variants)) for one in targets if one.variant not in ("", *variants)]


def _metrics(facts: Facts) -> list[str]:
    """What the run's evaluations logged and a target could be given for."""
    evaluated = {one.metric for one in facts.measurements if one.phase is Phase.EVAL}
    return sorted(name for name in evaluated if metric(name).family == "quality" and metric(name).better != "none")


def _nobodys(target: Reference, known: list[str]) -> CheckResult:
    trained = f"trained are {some(known)}" if known else "none is trained on this cluster"
    return CheckResult(
        check=NAME,
        status=Status.INSUFFICIENT_DATA,
        reason=f"the target of {target.metric} is for variant {target.variant!r}; {trained}",
        metric=target.metric,
        values={"target": target.target, "variant": target.variant, "known": known},
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
    value = _in_unit(last, target.unit, facts)
    values["value"] = value
    if not math.isfinite(value):
        return result(Status.FAILED, f"{target.metric} is {value}")
    better = value - target.target if metric(target.metric).better != "lower" else target.target - value
    shown = f"{target.metric} {number(value)}, target {number(target.target)} ± {number(target.tolerance)}"
    # What stands exactly at the limit passes, whatever the last bit of the subtraction says.
    if better < -target.tolerance - 1e-9:
        return result(Status.FAILED, f"{shown}: too low" if metric(target.metric).better != "lower" else shown)
    if better > context.policy.accuracy.too_good * max(target.tolerance, 1e-12):
        if _may_be_per_cent(last, target.unit, facts):
            both = f"{number(last.value)} is {number(value)} % as a share and {number(last.value)} % as per cent"
            hint = 'the log prints no unit; a target with unit "1" says that it is a share'
            return result(Status.UNCONFIRMED, f"{target.metric} {both}: {hint}")
        return result(Status.IMPROVEMENT, f"{shown}: suspiciously high: review before accepting")
    return result(Status.PASS, shown)


def _last_evaluation(facts: Facts, name: str, variant: str) -> Measurement | None:
    """What the variant's own evaluation step says, else the last evaluation inside its training."""
    for kind in (StepKind.EVAL, StepKind.TRAIN):
        steps = [step.id for step in facts.plan.steps if step.kind is kind and step.variant == variant]
        found = [
            one
            for one in last_attempts(facts.measurements)
            if one.step in steps and one.phase is Phase.EVAL and one.metric == name
        ]
        if found:
            # Rank 0 (or no rank) speaks for the run: the others evaluate with their own batch statistics.
            lead = min(one.rank for one in found)
            return max(
                (one for one in found if one.rank == lead), key=lambda one: (steps.index(one.step), one.ordinal)
            )
    return None


def _evaluated(facts: Facts, variant: str) -> str:
    """The id of the variant's evaluation step that passed, '' when there is none."""
    steps = [step for step in facts.plan.steps if step.kind is StepKind.EVAL and step.variant == variant]
    return next((step.id for step in steps if facts.step_status.get(step.id) is Status.PASS), "")


def _in_unit(one: Measurement, unit: str, facts: Facts) -> float:
    per_cent = one.unit == "%" or (not one.unit and _beyond_one(one, facts))
    if per_cent and unit == "1":
        return one.value / 100
    return one.value * 100 if not per_cent and unit == "%" else one.value


def _beyond_one(one: Measurement, facts: Facts) -> bool:
    """Whether the run printed a value of the metric that is no share of one: then all of them are per cent."""
    if metric(one.metric).better != "higher":
        return False
    alike = (other.value for other in facts.measurements if (other.metric, other.unit) == (one.metric, one.unit))
    return any(math.isfinite(value) and value > 1 + 1e-9 for value in alike)


def _may_be_per_cent(one: Measurement, unit: str, facts: Facts) -> bool:
    """Whether a number without a unit, compared with per cent, may be either a share or per cent."""
    return unit == "%" and not one.unit and not _beyond_one(one, facts)
