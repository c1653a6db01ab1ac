"""Has a number drifted away from the baseline that a person pinned?"""

from statistics import median

from tipcflow.check.context import CheckContext, Pin
from tipcflow.check.excuse import Excuses, excuses_of
from tipcflow.check.select import amount
from tipcflow.config.policy import MetricRule
from tipcflow.domain import CheckResult, Facts, Status, numbers_of, plain_metric
from tipcflow.domain.metrics import metric

NAME = "baseline.pinned"
# One slow run is no drift: this one and the two before it have to agree.
RUNS = 3


def against_pinned(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per pinned (step, leg, metric) that the run measured.

    Compared is the median of this run and the two before it with the pinned value; a change beyond the metric's
    floor counts. This alone finds a drift that is too slow for the other rules, whose history drifts along.
    """
    if not context.pins:
        return []
    excuses = excuses_of(facts, context)
    return [
        _judged(key, value, pin, context, excuses)
        for key, value in numbers_of(facts.measurements).items()
        if (pin := context.pins.get(key)) is not None
    ]


def _judged(key: str, value: float, pin: Pin, context: CheckContext, excuses: Excuses) -> CheckResult:
    step, leg, name = key.split("|")
    known = metric(plain_metric(name))
    rule = context.policy.rule_of(name) or context.policy.metrics.get(known.name, MetricRule())
    floor = context.policy.floor_of(name)
    recent = [*context.past(key)[-(RUNS - 1) :], value]
    values = {
        "pinned": pin.value,
        "run": pin.run,
        "who": pin.who,
        "why": pin.why,
        "runs": len(recent),
        "limit": floor,
    }

    def result(status: Status, reason: str) -> CheckResult:
        return CheckResult(
            check=NAME,
            status=status,
            reason=reason,
            step=step,
            leg=leg,
            metric=known.name,
            gating=rule.gating,
            values=values,
        )

    if len(recent) < RUNS or not pin.value:
        missing = f"{RUNS - len(recent)} runs are missing" if pin.value else "the pinned value is 0"
        return result(Status.INSUFFICIENT_DATA, f"{amount(value, known.unit)}; {missing}")
    now = values["value"] = median(recent)
    change = (now - pin.value) / abs(pin.value)
    worse = {"lower": change, "higher": -change}.get(known.better, 0.0)
    shown = (
        f"{amount(now, known.unit)} over {RUNS} runs, {now / pin.value:.3f} x what {pin.who} pinned "
        f"({amount(pin.value, known.unit)}, run {pin.run})"
    )
    excuse = excuses.node(key, 1 + worse, floor) if worse > floor else ""
    if excuse:
        return result(Status.INSUFFICIENT_DATA, f"{shown}, {excuse}")
    if worse > floor:
        return result(Status.REGRESSION, f"{shown}; {floor:.1%} was allowed")
    return result(Status.IMPROVEMENT if worse < -floor else Status.PASS, shown)
