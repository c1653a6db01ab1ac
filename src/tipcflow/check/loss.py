"""Is the training loss a finite number everywhere, and does it fall?"""

import math
from statistics import median

from tipcflow.check.context import CheckContext
from tipcflow.check.select import losses, number, training_steps
from tipcflow.domain import CheckResult, Facts, Measurement, Status, Step


def loss_finite(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """Per training step: `failed` names the first iteration, node and rank whose loss is nan or inf."""
    return [_finite(facts, step) for step in training_steps(facts)]


def loss_falling(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """Per training step: is the median loss of the last quarter below that of the first?

    Iterations are compared by their position, with the median over the ranks at each: single outliers of one rank
    or of one iteration do not decide.
    """
    return [_falling(facts, step, context) for step in training_steps(facts)]


def _finite(facts: Facts, step: Step) -> CheckResult:
    logged = [one for series in losses(facts, step).values() for one in series]
    broken = sorted(
        (one for one in logged if not math.isfinite(one.value)), key=lambda one: (one.ordinal, one.rank)
    )
    values: dict[str, object] = {"losses": len(logged), "not_finite": len(broken)}
    if broken:
        first = broken[0]
        values |= {"node": first.node, "rank": first.rank, "epoch": first.epoch, "iteration": first.iteration}
        reason = f"loss is {first.value} {_where(first)}; {len(broken)} of {len(logged)} losses are not finite"
        return CheckResult(
            check="loss.finite", status=Status.FAILED, reason=reason, step=step.id, metric="loss", values=values
        )
    status = Status.PASS if logged else Status.INSUFFICIENT_DATA
    reason = f"{len(logged)} losses, all finite" if logged else "no loss was logged"
    return CheckResult(
        check="loss.finite", status=status, reason=reason, step=step.id, metric="loss", values=values
    )


def _where(one: Measurement) -> str:
    rank = f", rank {one.rank}" if one.rank >= 0 else ""
    place = f"epoch {one.epoch}, iteration {one.iteration}" if one.epoch >= 0 else f"sample {one.ordinal}"
    return f"at {place} (node {one.node}{rank})"


def _falling(facts: Facts, step: Step, context: CheckContext) -> CheckResult:
    def result(status: Status, reason: str, **values: float) -> CheckResult:
        return CheckResult(
            check="loss.falling",
            status=status,
            reason=reason,
            step=step.id,
            metric="loss",
            gating=context.policy.loss.falling,
            values=values,
        )

    curve = _curve(facts, step)
    needed = context.policy.loss.min_points
    if len(curve) < needed:
        return result(
            Status.INSUFFICIENT_DATA, f"{len(curve)} of {needed} iterations that it takes to see a trend"
        )
    if not all(math.isfinite(value) for value in curve):
        return result(Status.INSUFFICIENT_DATA, "there are losses that are not finite (see loss.finite)")
    quarter = max(1, len(curve) // 4)
    first, last = median(curve[:quarter]), median(curve[-quarter:])
    numbers = f"median of the first {quarter} iterations {number(first)}, of the last {quarter} {number(last)}"
    fell = last < first
    return result(
        Status.PASS if fell else Status.FAILED,
        numbers if fell else f"the loss does not fall: {numbers}",
        first=first,
        last=last,
        iterations=len(curve),
    )


def _curve(facts: Facts, step: Step) -> list[float]:
    """Median loss over the ranks at each position that every rank reached."""
    series = list(losses(facts, step).values())
    length = min((len(one) for one in series), default=0)
    return [median(one[position].value for one in series) for position in range(length)]
