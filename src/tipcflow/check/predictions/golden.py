"""Do the predictions match the stored goldens?"""

import posixpath
from dataclasses import replace

from tipcflow.check.context import CheckContext
from tipcflow.check.predictions.scores import (
    Scores,
    compare,
    comparison_values,
    different_images,
    passed_message,
)
from tipcflow.check.select import inference_steps, leg_key
from tipcflow.config.goldens import GoldenPredictions
from tipcflow.config.policy import budget_of
from tipcflow.domain import CheckResult, Facts, GoldenKey, Leg, Status, Step
from tipcflow.domain.numbers.measured import ValueKey

NAME = "golden.results"


def golden_results(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per leg that passed and has a golden; one `insufficient_data` per inference step whose goldens
    are missing or were made by another training: they are never silently absent. A leg that has a golden and
    printed no prediction lacks its output: `failed`.

    Source of the rule: TIPC's compare_results.py, which compares each precision with its own tolerances.
    """
    unfit = _unfit(facts, context)
    return [
        result
        for step in inference_steps(facts)
        if not step.not_run and (legs := _passed(facts, step))
        for result in (_open_step(facts, step, legs, unfit, context) or _step(facts, step, legs, context))
    ]


def _open_step(facts: Facts, step: Step, legs: list[Leg], unfit: str, context: CheckContext) -> list[CheckResult]:
    silent = not any(facts.predictions.get(leg_key(step, leg.id)) for leg in legs)
    if context.goldens is None and silent:
        return [_open(step, "legs printed no predictions; no golden to store or compare", context)]
    return [_open(step, unfit, context)] if unfit else []


def _step(facts: Facts, step: Step, legs: list[Leg], context: CheckContext) -> list[CheckResult]:
    results, without = [], []
    for leg in legs:
        golden = context.goldens.predictions.get(GoldenKey(step.id, leg.precision)) if context.goldens else None
        if golden is None:
            without.append(leg.precision)
        else:
            results.append(_judged(facts, step, leg, golden, context))
    if without:
        precisions = ", ".join(dict.fromkeys(without))
        results.append(_open(step, f"no golden is stored for {precisions}: {_RECORD.format(facts.run)}", context))
    return results


_RECORD = 'review the predictions, then run `tipcflow golden record {} --because "…"`'


def _passed(facts: Facts, step: Step) -> list[Leg]:
    """The legs that passed; others are other checks' business."""
    return [leg for leg in step.legs if facts.leg_status.get(leg_key(step, leg.id)) is Status.PASS]


def _unfit(facts: Facts, context: CheckContext) -> str:
    """Why the stored goldens do not apply to this run; '' if they apply."""
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


def _judged(facts: Facts, step: Step, leg: Leg, golden: GoldenPredictions, context: CheckContext) -> CheckResult:
    rule = context.policy.golden
    allowed = budget_of(rule.budgets, leg.id, leg.precision)
    scores, expected = _comparable(facts.predictions.get(leg_key(step, leg.id), {}), golden)

    def result(status: Status, reason: str, **values: object) -> CheckResult:
        """Return the result with the golden and the allowed difference among its values."""
        recorded = context.goldens.run if context.goldens else ""
        values |= {
            "golden": recorded,
            ValueKey.GOLDEN_LEG: golden.origin,
            "rtol": allowed.rtol,
            "atol": allowed.atol,
        }
        return CheckResult(
            check=NAME, status=status, reason=reason, step=step.id, leg=leg.id, gating=rule.gating, values=values
        )

    if not facts.predictions.get(leg_key(step, leg.id)):
        return result(Status.FAILED, f"the leg printed no predictions; a golden of {golden.origin} is stored")
    outliers = different_images(scores, expected)
    if outliers:
        return result(Status.FAILED, f"other images than the golden's: {outliers}")
    worst = compare(scores, expected, allowed)
    if worst.problem:
        reason = f"{worst.problem} (image {worst.picture}, against the golden of {golden.origin})"
        return result(Status.FAILED, reason, **comparison_values(worst, expected))
    return result(Status.PASS, passed_message(worst, expected), **comparison_values(worst, expected))


def _comparable(scores: Scores, golden: GoldenPredictions) -> tuple[Scores, Scores]:
    """The leg's predictions and the golden's. Of a suite's file of results only its images, by their names; an
    image in which neither finds anything is not compared, because logs do not have results without numbers."""
    if not golden.file:
        return scores, golden.scores
    named = {replace(key, source=posixpath.basename(key.source)): row for key, row in scores.items()}
    return (
        {key: row for key, row in named.items() if key in golden.scores},
        {key: row for key, row in golden.scores.items() if row or key in named},
    )
