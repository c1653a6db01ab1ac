"""Do oneDNN on and oneDNN off give the same answers on real inputs?"""

import math
from dataclasses import dataclass

from tipcflow.check.context import CheckContext
from tipcflow.check.ran_engine import actual_settings, switch
from tipcflow.check.select import inference_steps, leg_key
from tipcflow.config.policy import ParityRule
from tipcflow.domain import CheckResult, Facts, Leg, Status, Step

NAME = "parity.onednn"
Scores = dict[str, tuple[float, ...]]


def parity_onednn(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per pair of CPU legs that are equal but for oneDNN; none where a file declares no such pair."""
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
    return [(pair[True], pair[False]) for pair in sides.values() if len(pair) == 2]


def _judged(facts: Facts, step: Step, on: Leg, off: Leg, rule: ParityRule) -> CheckResult:
    def result(status: Status, reason: str, **values: object) -> CheckResult:
        values |= {"compared_with": off.id, "rtol": rule.rtol, "atol": rule.atol}
        return CheckResult(check=NAME, status=status, reason=reason, step=step.id, leg=on.id, values=values)

    open_question = _incomparable(facts, step, on, off)
    if open_question:
        return result(Status.INSUFFICIENT_DATA, open_question)
    scores, expected = (facts.predictions[leg_key(step, leg.id)] for leg in (on, off))
    apart = sorted(set(scores) ^ set(expected))
    if apart:
        return result(Status.FAILED, f"{len(apart)} images were judged by one side only, first {apart[0]}")
    worst = [_distance(image, scores[image], expected[image], rule) for image in sorted(expected)]
    top = max(worst, key=lambda one: one.excess)
    values = {
        "images": len(worst),
        "max_abs": max(one.absolute for one in worst),
        "max_rel": max(one.relative for one in worst),
        "classes": len({_class(answer) for answer in expected.values()}),
    }
    if top.problem:
        return result(Status.FAILED, f"{top.problem} (image {top.image}, against {off.id})", **values)
    if len({_class(answer) for answer in expected.values()}) < rule.min_classes:
        reason = f"all {len(worst)} images got the same class: parity would mean nothing"
        return result(Status.INSUFFICIENT_DATA, reason, **values)
    reason = (
        f"{len(worst)} images, {values['classes']} classes: same class everywhere, "
        f"largest difference {values['max_abs']:.2g} (relative {values['max_rel']:.2g})"
    )
    return result(Status.PASS, reason, **values)


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
        return f"both sides ran with oneDNN {'on' if really[0] else 'off'}: there is nothing to compare"
    return ""


@dataclass(frozen=True)
class _Distance:
    """How far one image's scores are apart; `excess` orders images by how wrong they are."""

    image: str
    absolute: float
    relative: float
    excess: float
    problem: str = ""


def _distance(image: str, scores: tuple[float, ...], expected: tuple[float, ...], rule: ParityRule) -> _Distance:
    if len(scores) != len(expected) or not scores:
        problem = f"{len(scores)} scores against {len(expected)}"
        return _Distance(image, math.inf, math.inf, math.inf, problem)
    if not all(math.isfinite(one) for one in (*scores, *expected)):
        return _Distance(image, math.inf, math.inf, math.inf, "scores are not finite")
    absolute = [abs(a - b) for a, b in zip(scores, expected, strict=True)]
    # Of scores as small as the tolerance the last bits are noise: their ratio would only frighten the reader.
    relative = [d / abs(b) for d, b in zip(absolute, expected, strict=True) if abs(b) > max(rule.atol, 1e-30)]
    excess = max(d - rule.atol - rule.rtol * abs(b) for d, b in zip(absolute, expected, strict=True))
    problem = ""
    if _class(scores) != _class(expected):
        problem, excess = f"class {_class(scores)} against class {_class(expected)}", math.inf
    elif excess > 0:
        problem = f"scores differ by {max(absolute):.3g}, allowed {rule.atol:g} + {rule.rtol:g} relative"
    return _Distance(image, max(absolute), max(relative, default=0.0), excess, problem)


def _class(scores: tuple[float, ...]) -> int:
    return max(range(len(scores)), key=scores.__getitem__, default=-1)
