"""Does inference predict the same with and without oneDNN on real inputs?"""

from tipcflow.check.context import CheckContext
from tipcflow.check.predictions.scores import (
    compare,
    comparison_values,
    different_images,
    passed_message,
    too_alike,
)
from tipcflow.check.proof.engine import actual_settings, switch
from tipcflow.check.select import inference_steps, leg_key
from tipcflow.config.policy import ParityRule
from tipcflow.domain import CheckResult, Facts, Leg, Status, Step
from tipcflow.domain.numbers.measured import ValueKey

NAME = "parity.onednn"


def parity_onednn(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per pair of CPU legs that are equal but for oneDNN; none where a file declares no such pair, or
    where neither leg can run."""
    return [
        _judged(facts, step, on, off, context.policy.parity)
        for step in inference_steps(facts)
        for on, off in _pairs(step)
    ]


def _pairs(step: Step) -> list[tuple[Leg, Leg]]:
    sides: dict[tuple[object, ...], dict[bool, Leg]] = {}
    for leg in step.legs:
        if leg.device == "cpu" and leg.onednn is not None:
            like = (leg.precision, leg.threads, leg.batch_size, leg.tensorrt)
            sides.setdefault(like, {})[leg.onednn] = leg
    pairs = [(pair[True], pair[False]) for pair in sides.values() if len(pair) == 2]
    return [(on, off) for on, off in pairs if not (on.not_run and off.not_run)]


def _judged(facts: Facts, step: Step, on: Leg, off: Leg, rule: ParityRule) -> CheckResult:
    def result(status: Status, reason: str, **values: object) -> CheckResult:
        values |= {ValueKey.COMPARED_WITH: off.id, "rtol": rule.rtol, "atol": rule.atol}
        return CheckResult(check=NAME, status=status, reason=reason, step=step.id, leg=on.id, values=values)

    open_question = _incomparable(facts, step, on, off)
    if open_question:
        return result(Status.INSUFFICIENT_DATA, open_question)
    scores, expected = (facts.predictions[leg_key(step, leg.id)] for leg in (on, off))
    outliers = different_images(scores, expected)
    if outliers:
        return result(Status.FAILED, outliers)
    worst = compare(scores, expected, rule)
    values = comparison_values(worst, expected)
    if worst.problem:
        return result(Status.FAILED, f"{worst.problem} (image {worst.picture}, against {off.id})", **values)
    if reason := too_alike(expected, rule.min_classes):
        return result(Status.INSUFFICIENT_DATA, reason, **values)
    return result(Status.PASS, passed_message(worst, expected), **values)


def _incomparable(facts: Facts, step: Step, on: Leg, off: Leg) -> str:
    """Why the two sides cannot be compared; '' when they can."""
    for leg in (on, off):
        key = leg_key(step, leg.id)
        status = facts.leg_status.get(key)
        if status is not Status.PASS:
            why = facts.step_reason.get(key) or leg.not_run
            return f"{leg.id} is {status or Status.BLOCKED}" + (f": {why}" if why else "")
        if not facts.predictions.get(key):
            return f"{leg.id} printed no predictions"
    really = [switch(actual_settings(facts, step, leg.id).get("onednn", "")) for leg in (on, off)]
    if really[0] is not None and really[0] is really[1]:
        return f"both sides ran with oneDNN {'on' if really[0] else 'off'}; not compared"
    return ""
