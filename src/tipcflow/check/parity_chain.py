"""Does each leg still answer what the network answered before its export?"""

from tipcflow.check.context import CheckContext
from tipcflow.check.scores import Scores, apart, classes, compare, same, told
from tipcflow.check.select import inference_steps, leg_key
from tipcflow.config.policy import Tolerance
from tipcflow.domain import CheckResult, Facts, Leg, Status, Step, StepKind

NAME = "parity.chain"


def parity_chain(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per leg that passed, against the predictions that the variant's export (else its evaluation)
    printed of the network itself, within the budget of the leg's precision; one `insufficient_data` per inference
    step whose network printed none."""
    results = []
    for step in inference_steps(facts):
        passed = [leg for leg in step.legs if facts.leg_status.get(leg_key(step, leg.id)) is Status.PASS]
        source, expected = _network(facts, step)
        if passed and not expected:
            reason = "neither the export nor the evaluation printed predictions of the network itself"
            results.append(CheckResult(check=NAME, status=Status.INSUFFICIENT_DATA, reason=reason, step=step.id))
            continue
        results += [_judged(facts, step, leg, source, expected, context) for leg in passed]
    return results


def _network(facts: Facts, step: Step) -> tuple[str, Scores]:
    """(step that printed them, predictions) of the network whose export the step infers with."""
    for kind in (StepKind.EXPORT, StepKind.EVAL):
        for one in facts.plan.steps:
            if one.kind is kind and one.variant == step.variant and facts.step_status.get(one.id) is Status.PASS:
                answers = facts.predictions.get(one.id)
                if answers:
                    return one.id, answers
    return "", {}


def _judged(
    facts: Facts, step: Step, leg: Leg, source: str, expected: Scores, context: CheckContext
) -> CheckResult:
    budgets = context.policy.chain
    allowed = budgets.get(leg.precision) or budgets.get("fp32") or Tolerance()
    scores = facts.predictions.get(leg_key(step, leg.id), {})

    def result(status: Status, reason: str, **values: object) -> CheckResult:
        values |= {"compared_with": source, "rtol": allowed.rtol, "atol": allowed.atol}
        return CheckResult(check=NAME, status=status, reason=reason, step=step.id, leg=leg.id, values=values)

    if not scores:
        return result(Status.INSUFFICIENT_DATA, "the leg printed no predictions")
    odd = apart(scores, expected)
    if odd:
        return result(Status.INSUFFICIENT_DATA, f"not the same images as in {source}: {odd}")
    if classes(expected) < context.policy.parity.min_classes:
        return result(
            Status.INSUFFICIENT_DATA, f"all {len(expected)} images got the same class: parity would mean nothing"
        )
    worst = compare(scores, expected, allowed)
    if worst.problem:
        reason = f"{worst.problem} (image {worst.picture}, against the network in {source})"
        return result(Status.FAILED, reason, **told(worst, expected))
    return result(Status.PASS, same(worst, expected), **told(worst, expected))
