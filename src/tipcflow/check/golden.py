"""Are the predictions those that somebody accepted and stored?"""

from tipcflow.check.context import CheckContext
from tipcflow.check.scores import apart, compare, same, told
from tipcflow.check.select import inference_steps, leg_key
from tipcflow.config.goldens import GoldenAnswers
from tipcflow.config.policy import Tolerance
from tipcflow.domain import CheckResult, Facts, Leg, Status, Step

NAME = "golden.results"


def golden_results(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per leg that passed and has a golden; one `insufficient_data` per inference step whose goldens
    are missing or were made by another training: they are never silently absent.

    Source of the rule: TIPC's compare_results.py, which compares each precision with its own tolerances.
    """
    steps = [step for step in inference_steps(facts) if not step.not_run and _answered(facts, step)]
    unfit = _unfit(facts, context)
    results = []
    for step in steps:
        if unfit:
            results.append(_open(step, unfit, context))
            continue
        without = []
        for leg in _answered(facts, step):
            golden = context.goldens.answers.get(f"{step.id}|{leg.precision}") if context.goldens else None
            if golden is None:
                without.append(leg.precision)
            else:
                results.append(_judged(facts, step, leg, golden, context))
        if without:
            words = ", ".join(dict.fromkeys(without))
            results.append(_open(step, f"no golden is stored for {words}: {_RECORD.format(facts.run)}", context))
    return results


_RECORD = 'look at the predictions, then `tipcflow golden record {} --because "…"`'


def _answered(facts: Facts, step: Step) -> list[Leg]:
    """The legs that passed and printed predictions; others are other checks' business."""
    keys = {leg.id: leg_key(step, leg.id) for leg in step.legs}
    return [
        leg
        for leg in step.legs
        if facts.leg_status.get(keys[leg.id]) is Status.PASS and facts.predictions.get(keys[leg.id])
    ]


def _unfit(facts: Facts, context: CheckContext) -> str:
    """Why the stored goldens say nothing about this run; '' when they do."""
    goldens, run = context.goldens, context.run
    if goldens is None:
        return f"no goldens are stored for this chain in {facts.plan.mode}: {_RECORD.format(facts.run)}"
    if run is not None and facts.plan.trains and run.seed != goldens.seed:
        return f"the goldens come from a training with seed {goldens.seed}, this run has {run.seed}"
    if facts.plan.trains and facts.plan.compat.value != goldens.compat:
        return f"the goldens come from a `{goldens.compat}` run, this is `{facts.plan.compat.value}`"
    return ""


def _open(step: Step, reason: str, context: CheckContext) -> CheckResult:
    return CheckResult(
        check=NAME,
        status=Status.INSUFFICIENT_DATA,
        reason=reason,
        step=step.id,
        gating=context.policy.golden.gating,
    )


def _judged(facts: Facts, step: Step, leg: Leg, golden: GoldenAnswers, context: CheckContext) -> CheckResult:
    rule = context.policy.golden
    allowed = rule.budgets.get(leg.precision) or rule.budgets.get("fp32") or Tolerance()
    scores = facts.predictions[leg_key(step, leg.id)]

    def result(status: Status, reason: str, **values: object) -> CheckResult:
        recorded = context.goldens.run if context.goldens else ""
        values |= {"golden": recorded, "golden_leg": golden.leg, "rtol": allowed.rtol, "atol": allowed.atol}
        return CheckResult(
            check=NAME, status=status, reason=reason, step=step.id, leg=leg.id, gating=rule.gating, values=values
        )

    odd = apart(scores, golden.scores)
    if odd:
        return result(Status.FAILED, f"other images than the golden's: {odd}")
    worst = compare(scores, golden.scores, allowed)
    if worst.problem:
        reason = f"{worst.problem} (image {worst.picture}, against the golden of {golden.leg})"
        return result(Status.FAILED, reason, **told(worst, golden.scores))
    return result(Status.PASS, same(worst, golden.scores), **told(worst, golden.scores))
