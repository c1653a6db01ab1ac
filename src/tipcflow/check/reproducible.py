"""Does the same seed give the same losses, in an earlier run and in a repeat within this one?"""

import math

from tipcflow.check.context import CheckContext
from tipcflow.check.select import training_steps
from tipcflow.domain import CheckResult, Facts, PastRun, Status, Step, losses_of, without_repeat

NAME = "loss.reproducible"
Curves = dict[str, tuple[float, ...]]


def loss_reproducible(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """Per training step: equal to the latest accepted run with the same seed, framework and suite?

    And per repeat: equal to the first repeat of the same variant? Losses are compared as they were printed.
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
    if not equal:
        last = context.history[-1]
        reason = (
            f"no earlier run is the same; the last one, {last.run}, has another {' and '.join(differences[-1])}"
        )
        return _result(step, context, Status.INSUFFICIENT_DATA, reason, differs=differences[-1])
    for past in reversed(equal):
        known = _of_step(past, step)
        before = {key: known[key] for key in curves if key in known}
        if before:
            return _compared(step, context, curves, before, f"run {past.run}")
    return _result(
        step, context, Status.INSUFFICIENT_DATA, f"{equal[-1].run} has no losses of this step, node and rank"
    )


def _of_step(past: PastRun, step: Step) -> Curves:
    """The losses of the same step, or of the first repeat where only one of the two runs repeated it."""
    found: dict[str, tuple[bool, str, tuple[float, ...]]] = {}
    for key, curve in past.losses.items():
        name, _, who = key.partition("|")
        if without_repeat(name) == without_repeat(step.id):
            found[who] = min(found.get(who, (True, "~", ())), (name != step.id, name, curve))
    return {who: curve for who, (_, _, curve) in found.items()}


def _differences(facts: Facts, past: PastRun, context: CheckContext) -> list[str]:
    mine = (facts.plan.seed, context.framework(facts), context.suite_sha256)
    theirs = (past.seed, past.framework, past.suite_sha256)
    names = ("seed", "framework", "suite")
    return [
        f"{name} ({_short(b)}, not {_short(a)})" for name, a, b in zip(names, mine, theirs, strict=True) if a != b
    ]


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
    return _compared(repeat, context, mine, twin, first.id)


def _compared(step: Step, context: CheckContext, mine: Curves, before: Curves, name: str) -> CheckResult:
    """Equal, or the first iteration (counted from 1) at which any rank diverges."""
    rule = context.policy.loss
    rtol = rule.rtol if rule.reproducible == "tolerance" else 0.0
    diverged: list[tuple[int, str, str]] = []
    for key in sorted(set(mine) & set(before)):
        a, b = mine[key], before[key]
        node, rank, *names = key.split("|")
        who = f"{node}, rank {rank}" + "".join(f", {name}" for name in names)
        for position, (x, y) in enumerate(zip(a, b, strict=False)):
            if not _same(x, y, rtol):
                diverged.append((position + 1, who, f"{x!r} against {y!r}"))
                break
        else:
            if len(a) != len(b):
                ends = (min(len(a), len(b)) + 1, who, f"{len(a)} against {len(b)} iterations")
                diverged.append(ends)
    if diverged:
        at, who, what = min(diverged)
        reason = f"differs from {name} from iteration {at} on (node {who}): {what}"
        return _result(step, context, Status.FAILED, reason, compared_with=name, first_divergent=at, where=who)
    count = min(len(curve) for curve in mine.values())
    how = "bit for bit as printed" if not rtol else f"within {rtol:g}"
    reason = f"{len(set(mine) & set(before))} ranks x {count} losses equal those of {name}, {how}"
    return _result(step, context, Status.PASS, reason, compared_with=name, iterations=count)


def _same(a: float, b: float, rtol: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or (math.isfinite(a) and math.isfinite(b) and abs(a - b) <= rtol * max(abs(a), abs(b)))
