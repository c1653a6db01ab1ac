"""Does the same seed reproduce the losses of earlier runs and of repeats within this run?

Exactly where the suite declares its training deterministic; elsewhere within what earlier runs show to be noise.
"""

from collections.abc import Sequence
from typing import Literal

from tipcflow.check.context import CheckContext
from tipcflow.check.numeric.curves import Curves, Divergence, first_divergence, learn
from tipcflow.check.select import training_steps
from tipcflow.domain import CheckResult, Facts, PastRun, Status, Step, losses_of, without_repeat

NAME = "loss.reproducible"
# `floor` compares with the policy's floor, because too few trainings are known to learn from.
Rule = Literal["exact", "tolerance", "learned", "floor"]


def loss_reproducible(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """Per training step: as in the accepted runs with the same seed and suite? Per repeat: as in the first one?

    Losses are compared as they were printed. A step that did not end well is compared as far as it came, and
    that never fails it: why it ended says more than where.
    """
    steps = training_steps(facts)
    results = [_with_past(facts, step, context) for step in steps]
    for step in steps:
        twins = [one for one in steps if one.variant == step.variant and one.repeat < step.repeat]
        if twins:
            first = min(twins, key=lambda one: one.repeat)
            results.append(_with_twin(facts, first, step, context))
    return results


def _result(step: Step, context: CheckContext, status: Status, reason: str, **values: object) -> CheckResult:
    gating = context.policy.loss.reproducible != "off"
    return CheckResult(
        check=NAME, status=status, reason=reason, step=step.id, metric="loss", gating=gating, values=values
    )


def _curves(facts: Facts, step: Step) -> Curves:
    """'node|rank', or 'node|rank|metric' where no loss is called `loss`, -> the losses as they were logged."""
    found = losses_of(one for one in facts.measurements if one.step == step.id)
    return {key.partition("|")[2]: curve for key, curve in found.items()}


def _rule(facts: Facts, context: CheckContext) -> Rule:
    """How losses of one seed are compared in this run."""
    asked = context.policy.loss.reproducible
    if asked in ("exact", "tolerance"):
        return "exact" if asked == "exact" else "tolerance"
    return "exact" if facts.plan.deterministic else "learned"


def _with_past(facts: Facts, step: Step, context: CheckContext) -> CheckResult:
    curves = _curves(facts, step)
    if not curves:
        return _result(step, context, Status.INSUFFICIENT_DATA, "no loss was logged")
    if facts.plan.seed is None:
        return _result(step, context, Status.INSUFFICIENT_DATA, "the run has no seed, so nothing has to be equal")
    if not context.history:
        return _result(step, context, Status.INSUFFICIENT_DATA, "there is no earlier accepted run")
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
            known = _known(across, step, curves)
            if len(known) >= context.policy.min_history:
                return _learned(facts, step, context, curves, known)
        last, words = context.history[-1], differences[-1]
        said = " and ".join(f"{name} {how}" for name, how in words.items())
        reason = f"no earlier run is the same; the last one, {last.run}, has another {said}"
        return _result(step, context, Status.INSUFFICIENT_DATA, reason, differs=sorted(words))
    known = _known(equal, step, curves)
    if not known:
        reason = f"{equal[-1].run} has no losses of this step, node and rank"
        return _result(step, context, Status.INSUFFICIENT_DATA, reason)
    if rule == "learned" and len(known) >= context.policy.min_history:
        return _learned(facts, step, context, curves, known)
    run, before = known[-1]
    return _compared(
        facts, step, context, curves, before, f"run {run}", "floor" if rule == "learned" else rule, len(known)
    )


def _known(runs: Sequence[PastRun], step: Step, curves: Curves) -> list[tuple[str, Curves]]:
    """(run, its losses of the step by the ranks that this run has, too), oldest first."""
    found: list[tuple[str, Curves]] = []
    for past in runs:
        of_step = _of_step(past, step)
        before = {key: of_step[key] for key in curves if key in of_step}
        if before:
            found.append((past.run, before))
    return found


def _of_step(past: PastRun, step: Step) -> Curves:
    """The losses of the same step, or of the first repeat where only one of the two runs repeated it."""
    found: dict[str, tuple[bool, str, tuple[float, ...]]] = {}
    for key, curve in past.losses.items():
        name, _, who = key.partition("|")
        if without_repeat(name) == without_repeat(step.id):
            found[who] = min(found.get(who, (True, "~", ())), (name != step.id, name, curve))
    return {who: curve for who, (_, _, curve) in found.items()}


def _differences(facts: Facts, past: PastRun, context: CheckContext) -> dict[str, str]:
    """What is not the same -> both values in words."""
    mine = (facts.plan.seed, context.framework(facts), context.suite_sha256)
    theirs = (past.seed, past.framework, past.suite_sha256)
    names = ("seed", "framework", "suite")
    return {
        name: f"({_short(b)}, not {_short(a)})" for name, a, b in zip(names, mine, theirs, strict=True) if a != b
    }


def _short(value: object) -> str:
    return str(value)[:24] or "unknown"


def _with_twin(facts: Facts, first: Step, repeat: Step, context: CheckContext) -> CheckResult:
    mine, twin = _curves(facts, repeat), _curves(facts, first)
    if not mine or not twin:
        return _result(repeat, context, Status.INSUFFICIENT_DATA, f"no losses to compare with {first.id}")
    if facts.plan.seed is None:
        return _result(
            repeat, context, Status.INSUFFICIENT_DATA, "the run has no seed, so nothing has to be equal"
        )
    rule = _rule(facts, context)
    if not _ended_well(facts, first):
        reason = f"{first.id} did not end well, so nothing is compared with it"
        return _result(repeat, context, Status.INSUFFICIENT_DATA, reason)
    return _compared(facts, repeat, context, mine, twin, first.id, "floor" if rule == "learned" else rule, known=1)


def _ended_well(facts: Facts, step: Step) -> bool:
    return facts.step_status.get(step.id) is Status.PASS


def _learned(
    facts: Facts, step: Step, context: CheckContext, mine: Curves, known: list[tuple[str, Curves]]
) -> CheckResult:
    """Within what the earlier trainings with this seed show to be noise."""
    rule = context.policy.loss
    learnt = learn([curves for _, curves in known], floor=rule.floor, factor=rule.factor)
    if len({len(curve) for _, curves in known for curve in curves.values()}) > 1:
        # The number of iterations is no constant of this training.
        mine = {who: curve[: len(learnt.usual[who])] for who, curve in mine.items() if who in learnt.usual}
    name = f"the {learnt.runs} earlier runs with this seed"
    found = first_divergence(mine, learnt.usual, learnt.limits)
    if found is None:
        reason = f"{_counted(mine, learnt.usual)} within what {name} vary by ({learnt.largest:.2g})"
        return _result(step, context, Status.PASS, reason, compared_with=known[-1][0], tolerance=learnt.largest)
    return _diverged(facts, step, context, found, name, learnt.largest)


def _compared(
    facts: Facts,
    step: Step,
    context: CheckContext,
    mine: Curves,
    before: Curves,
    name: str,
    how: Rule,
    known: int,
) -> CheckResult:
    """Equal, or within one tolerance, to one other training."""
    rule = context.policy.loss
    rtol = {"exact": 0.0, "tolerance": rule.rtol}.get(how, rule.floor)
    limits = {key: (rtol,) * len(curve) for key, curve in mine.items()}
    found = first_divergence(mine, before, limits)
    if found is None:
        words = "bit for bit as printed" if not rtol else f"within {rtol:g}"
        reason = f"{_counted(mine, before)} equal those of {name}, {words}"
        count = min(len(curve) for curve in mine.values())
        return _result(step, context, Status.PASS, reason, compared_with=name, iterations=count)
    if how == "floor" and not found.by_length:
        reason = (
            f"differs from {name} from iteration {found.at} on ({found.where}): {found.what}; the suite does not "
            f"declare its training deterministic, and {known} of {context.policy.min_history} earlier trainings "
            "with this seed are known"
        )
        return _result(step, context, Status.INSUFFICIENT_DATA, reason, **_values(found, name))
    return _diverged(facts, step, context, found, name, rtol)


def _diverged(
    facts: Facts, step: Step, context: CheckContext, found: Divergence, name: str, tolerance: float
) -> CheckResult:
    values = _values(found, name) | {"tolerance": tolerance}
    if not _ended_well(facts, step):
        status = facts.step_status.get(step.id)
        word = status.value if status else "not at its end"
        same = f"the first {found.at - 1} losses equal those of {name}" if found.by_length else ""
        reason = f"the training is {word}: {same or f'differs from {name} from iteration {found.at} on'}"
        return _result(step, context, Status.INSUFFICIENT_DATA, reason, **values)
    reason = f"differs from {name} from iteration {found.at} on ({found.where}): {found.what}"
    return _result(step, context, Status.FAILED, reason, **values)


def _values(found: Divergence, name: str) -> dict[str, object]:
    return {"compared_with": name, "first_divergent": found.at, "where": found.where.removeprefix("node ")}


def _counted(mine: Curves, before: Curves) -> str:
    count = min(len(curve) for curve in mine.values())
    return f"{len(set(mine) & set(before))} ranks x {count} losses"
