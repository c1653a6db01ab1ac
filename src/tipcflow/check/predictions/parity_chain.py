"""Does each leg predict what the network predicted before its export?"""

from tipcflow.check.context import CheckContext
from tipcflow.check.predictions.scores import (
    Scores,
    compare,
    comparison_values,
    different_images,
    passed_message,
    too_alike,
)
from tipcflow.check.select import inference_steps, leg_key
from tipcflow.config.policy import budget_of
from tipcflow.domain import CheckResult, Facts, LegKey, Status, Step, StepKind
from tipcflow.domain.numbers.measured import ValueKey

NAME = "parity.chain"


def parity_chain(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per leg that passed, against the predictions that the variant's export (else its evaluation)
    printed of the network itself, within the budget of the leg; one `insufficient_data` per inference step whose
    network printed none. Where export and evaluation both printed some, they are also compared, as fp32."""
    results = [
        _compared(
            facts.predictions[LegKey(export.id)],
            evaluation.id,
            facts.predictions[LegKey(evaluation.id)],
            "fp32",
            export,
            context,
        )
        for export in facts.plan.steps
        if export.kind is StepKind.EXPORT and _printed(facts, export)
        for evaluation in facts.plan.steps
        if evaluation.kind is StepKind.EVAL and _same(export, evaluation) and _printed(facts, evaluation)
    ]
    for step in inference_steps(facts):
        passed = [leg for leg in step.legs if facts.leg_status.get(leg_key(step, leg.id)) is Status.PASS]
        source, expected = _network(facts, step)
        if passed and not expected:
            reason = "neither the export nor the evaluation printed predictions of the network itself"
            results.append(CheckResult(check=NAME, status=Status.INSUFFICIENT_DATA, reason=reason, step=step.id))
            continue
        for leg in passed:
            scores = facts.predictions.get(leg_key(step, leg.id), {})
            # Legs that judge other data on purpose all do.
            same_data = any(
                set(facts.predictions.get(leg_key(step, other.id), {})) == set(expected) for other in passed
            )
            results.append(
                _compared(scores, source, expected, leg.precision, step, context, leg.id, same_data=same_data)
            )
    return results


def _same(step: Step, other: Step) -> bool:
    """Whether two steps are of the same variant and repeat."""
    return (step.variant, step.repeat) == (other.variant, other.repeat)


def _printed(facts: Facts, step: Step) -> bool:
    return facts.step_status.get(step.id) is Status.PASS and bool(facts.predictions.get(LegKey(step.id)))


def _network(facts: Facts, step: Step) -> tuple[str, Scores]:
    """(step that printed them, predictions) of the network whose export the step infers with."""
    for kind in (StepKind.EXPORT, StepKind.EVAL):
        for candidate in facts.plan.steps:
            if candidate.kind is kind and _same(candidate, step) and _printed(facts, candidate):
                return candidate.id, facts.predictions[LegKey(candidate.id)]
    return "", {}


def _compared(
    scores: Scores,
    source: str,
    expected: Scores,
    precision: str,
    step: Step,
    context: CheckContext,
    leg: str = "",
    *,
    same_data: bool = False,
) -> CheckResult:
    allowed = budget_of(context.policy.chain, leg, precision)

    def result(status: Status, reason: str, **values: object) -> CheckResult:
        values |= {ValueKey.COMPARED_WITH: source, "rtol": allowed.rtol, "atol": allowed.atol}
        return CheckResult(check=NAME, status=status, reason=reason, step=step.id, leg=leg, values=values)

    if not scores:
        return result(Status.INSUFFICIENT_DATA, "the leg printed no predictions")
    outliers = different_images(scores, expected)
    if outliers:
        status = Status.FAILED if same_data else Status.INSUFFICIENT_DATA
        return result(status, f"not the same images as in {source}: {outliers}")
    worst = compare(scores, expected, allowed)
    values = comparison_values(worst, expected)
    if worst.problem:
        reason = f"{worst.problem} (image {worst.picture}, against the network in {source})"
        return result(Status.FAILED, reason, **values)
    # Only agreement on one class proves nothing: a difference is a difference with any number of images.
    if reason := too_alike(expected, context.policy.parity.min_classes):
        return result(Status.INSUFFICIENT_DATA, reason, **values)
    return result(Status.PASS, passed_message(worst, expected), **values)
