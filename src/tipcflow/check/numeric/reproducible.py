"""Does the same seed reproduce the losses of earlier runs and of repeats within this run?

Exactly where the suite declares its training deterministic; elsewhere within what earlier runs show to be noise.
"""

from collections.abc import Sequence
from typing import Literal

from tipcflow.check.context import CheckContext
from tipcflow.check.numeric.curves import Curves, Divergence, first_divergence, learn
from tipcflow.check.select import training_steps
from tipcflow.domain import CheckResult, CurveKey, Facts, PastRun, Status, Step, losses_of, without_repeat
from tipcflow.domain.numbers.measured import ValueKey
from tipcflow.domain.numbers.units import counted
from tipcflow.domain.quarantine.signature import ReasonCode

NAME = "loss.reproducible"
# `floor` compares with the policy's floor, because too few trainings are known to learn from.
Rule = Literal["exact", "tolerance", "learned", "floor"]
# What differs between runs -> its name in reasons.
_SHOWN = {"suite": "the code of the suite"}
# Number of characters of a hash.
_SHA256 = 64


def loss_reproducible(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """Per training step: as in the accepted runs with the same seed and suite? Per repeat: as in the first one?

    Losses are compared as they were printed. A step that failed is compared as far as it ran, and
    that never fails it: the reason for its end matters more than the iteration.
    """
    steps = training_steps(facts)
    results = [_with_past(facts, step, context) for step in steps]
    for step in steps:
        twins = [other for other in steps if other.variant == step.variant and other.repeat < step.repeat]
        if twins:
            first = min(twins, key=lambda twin: twin.repeat)
            results.append(_with_twin(facts, first, step, context))
    return results


def _result(step: Step, context: CheckContext, status: Status, reason: str, **values: object) -> CheckResult:
    gating = context.policy.loss.reproducible != "off"
    return CheckResult(
        check=NAME, status=status, reason=reason, step=step.id, metric="loss", gating=gating, values=values
    )


def _curves(facts: Facts, step: Step, context: CheckContext) -> Curves:
    """The step's losses as they were logged."""
    losses = losses_of((sample for sample in facts.measurements if sample.step == step.id), context.prints.losses)
    return {key.curve: curve for key, curve in losses.items()}


def _rule(facts: Facts, context: CheckContext) -> Rule:
    """How losses of one seed are compared in this run."""
    rule = context.policy.loss.reproducible
    if rule in ("exact", "tolerance"):
        return "exact" if rule == "exact" else "tolerance"
    return "exact" if facts.plan.deterministic else "learned"


def _with_past(facts: Facts, step: Step, context: CheckContext) -> CheckResult:
    curves = _curves(facts, step, context)
    if not curves:
        return _result(step, context, Status.INSUFFICIENT_DATA, "no loss logged")
    if facts.plan.seed is None:
        return _result(step, context, Status.INSUFFICIENT_DATA, "no seed set; losses are not compared")
    if not context.history:
        return _result(step, context, Status.INSUFFICIENT_DATA, "no earlier accepted run")
    differences = [_differences(facts, past, context) for past in context.history]
    equal = [past for past, different in zip(context.history, differences, strict=True) if not different]
    rule = _rule(facts, context)
    if not equal:
        across = [
            past
            for past, different in zip(context.history, differences, strict=True)
            if set(different) == {"framework"}
        ]
        if rule == "learned" and len({past.framework for past in across}) > 1:
            trainings = _known(across, step, curves)
            if len(trainings) >= context.policy.min_history:
                return _learned(facts, step, context, curves, trainings)
        last, changed = context.history[-1], differences[-1]
        phrase = " and ".join(f"{_SHOWN.get(name, name)} changed ({how})" for name, how in changed.items())
        reason = f"no comparable run: {phrase} since {last.run}"
        return _result(step, context, Status.INSUFFICIENT_DATA, reason, differs=sorted(changed))
    trainings = _known(equal, step, curves)
    if not trainings:
        reason = f"{equal[-1].run} has no losses of this step, node and rank"
        return _result(step, context, Status.INSUFFICIENT_DATA, reason)
    if rule == "learned" and len(trainings) >= context.policy.min_history:
        return _learned(facts, step, context, curves, trainings)
    run, before = trainings[-1]
    return _compared(
        facts, step, context, curves, before, f"run {run}", "floor" if rule == "learned" else rule, len(trainings)
    )


def _known(runs: Sequence[PastRun], step: Step, curves: Curves) -> list[tuple[str, Curves]]:
    """(run, its losses of the step by the ranks that this run has, too), oldest first."""
    trainings: list[tuple[str, Curves]] = []
    for past in runs:
        of_step = _of_step(past, step)
        before = {key: of_step[key] for key in curves if key in of_step}
        if before:
            trainings.append((past.run, before))
    return trainings


def _of_step(past: PastRun, step: Step) -> Curves:
    """The losses of the same step, or of the first repeat where only one of the two runs repeated it."""
    curves: dict[CurveKey, tuple[bool, str, tuple[float, ...]]] = {}
    for key, curve in past.losses.items():
        if without_repeat(key.step) == without_repeat(step.id):
            best = curves.get(key.curve, (True, "~", ()))
            curves[key.curve] = min(best, (key.step != step.id, key.step, curve))
    return {who: curve for who, (_, _, curve) in curves.items()}


def _differences(facts: Facts, past: PastRun, context: CheckContext) -> dict[str, str]:
    """What is not the same -> both values as text."""
    current = (facts.plan.seed, context.framework(facts), context.suite_sha256)
    earlier = (past.seed, past.framework, past.suite_sha256)
    names = ("seed", "framework", "suite")
    return {
        name: f"{_short(b)} -> {_short(a)}" for name, a, b in zip(names, current, earlier, strict=True) if a != b
    }


def _short(value: object) -> str:
    text = str(value)
    return text[:12] if len(text) == _SHA256 else text[:24] or "unknown"


def _with_twin(facts: Facts, first: Step, repeat: Step, context: CheckContext) -> CheckResult:
    current, twin = _curves(facts, repeat, context), _curves(facts, first, context)
    if not current or not twin:
        return _result(repeat, context, Status.INSUFFICIENT_DATA, f"no losses to compare with {first.id}")
    if facts.plan.seed is None:
        return _result(repeat, context, Status.INSUFFICIENT_DATA, "no seed set; losses are not compared")
    rule = _rule(facts, context)
    if not _ended_well(facts, first):
        reason = f"{first.id} did not succeed; not used for comparison"
        return _result(repeat, context, Status.INSUFFICIENT_DATA, reason)
    return _compared(
        facts, repeat, context, current, twin, first.id, "floor" if rule == "learned" else rule, runs=1
    )


def _ended_well(facts: Facts, step: Step) -> bool:
    return facts.step_status.get(step.id) is Status.PASS


def _learned(
    facts: Facts, step: Step, context: CheckContext, current: Curves, trainings: list[tuple[str, Curves]]
) -> CheckResult:
    """Within what the earlier trainings with this seed show to be noise."""
    rule = context.policy.loss
    learnt = learn([curves for _, curves in trainings], floor=rule.floor, factor=rule.factor)
    if len({len(curve) for _, curves in trainings for curve in curves.values()}) > 1:
        # The number of iterations is not a constant of this training.
        current = {who: curve[: len(learnt.usual[who])] for who, curve in current.items() if who in learnt.usual}
    name = f"the {learnt.runs} earlier runs with this seed"
    divergence = first_divergence(current, learnt.usual, learnt.limits)
    if divergence is None:
        reason = f"{_counted(current, learnt.usual)} within the variation of {name} ({learnt.largest:.2g})"
        return _result(
            step, context, Status.PASS, reason, compared_with=trainings[-1][0], tolerance=learnt.largest
        )
    return _diverged(facts, step, context, divergence, name, learnt.largest)


def _compared(
    facts: Facts,
    step: Step,
    context: CheckContext,
    current: Curves,
    before: Curves,
    name: str,
    how: Rule,
    runs: int,
) -> CheckResult:
    """Equal, or within one tolerance, to one other training."""
    rule = context.policy.loss
    rtol = {"exact": 0.0, "tolerance": rule.rtol}.get(how, rule.floor)
    limits = {key: (rtol,) * len(curve) for key, curve in current.items()}
    divergence = first_divergence(current, before, limits)
    if divergence is None:
        exactness = "bit for bit as printed" if not rtol else f"within {rtol:g}"
        reason = f"{_counted(current, before)} equal those of {name}, {exactness}"
        count = min(len(curve) for curve in current.values())
        return _result(step, context, Status.PASS, reason, compared_with=name, iterations=count)
    if how == "floor" and not divergence.by_length:
        reason = (
            f"differs from {name} from iteration {divergence.at} on (node {divergence.place}): {divergence.what}; "
            f"the suite does not declare its training deterministic, and {runs} of {context.policy.min_history} "
            "earlier trainings with this seed are known"
        )
        return _result(step, context, Status.INSUFFICIENT_DATA, reason, **_values(divergence, name))
    return _diverged(facts, step, context, divergence, name, rtol)


def _diverged(
    facts: Facts, step: Step, context: CheckContext, divergence: Divergence, name: str, tolerance: float
) -> CheckResult:
    values = _values(divergence, name) | {ValueKey.TOLERANCE: tolerance}
    if not _ended_well(facts, step):
        status = facts.step_status.get(step.id)
        word = status.value if status else "not at its end"
        same = f"the first {divergence.at - 1} losses equal those of {name}" if divergence.by_length else ""
        reason = f"the training is {word}: {same or f'differs from {name} from iteration {divergence.at} on'}"
        return _result(step, context, Status.INSUFFICIENT_DATA, reason, **values)
    reason = f"differs from {name} from iteration {divergence.at} on (node {divergence.place}): {divergence.what}"
    values[ValueKey.CODE] = ReasonCode.OTHER_LENGTH if divergence.by_length else ReasonCode.OTHER_LOSSES
    return _result(step, context, Status.FAILED, reason, **values)


def _values(divergence: Divergence, name: str) -> dict[str, object]:
    return {
        ValueKey.COMPARED_WITH: name,
        ValueKey.FIRST_DIVERGENT: divergence.at,
        "where": divergence.place,
    }


def _counted(current: Curves, before: Curves) -> str:
    count = min(len(curve) for curve in current.values())
    return f"{counted(len(set(current) & set(before)), 'rank')} x {count} losses"
