"""Has a metric drifted from its pinned baseline?"""

from statistics import median

from tipcflow.check.baseline.attribution import Excuses, excuses_of
from tipcflow.check.context import CheckContext, Pin
from tipcflow.check.select import amount, passed, repeats_of
from tipcflow.config.policy import MetricRule
from tipcflow.domain import CheckResult, Facts, Status, numbers_of, plain_metric
from tipcflow.domain.numbers.metrics import metric

NAME = "baseline.pinned"
# One slow run is no drift: this one and the two before it have to agree.
RUNS = 3
# Not printed by the suite.
_BY_RUNNER = frozenset({"peak_rss", "peak_gpu", "wall_time"})


def against_pinned(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per pinned (step, leg, metric); one that the run did not measure, though the step ended
    well, is `failed`.

    Compared is the median of this run and the two before it with the pinned value; a change beyond the metric's
    floor counts. This alone finds a drift that is too slow for the other rules, whose history drifts along.
    """
    if not context.pins:
        return []
    excuses, numbers = excuses_of(facts, context), numbers_of(facts.measurements)
    # A confirm run does only what is in doubt.
    partial = context.run is not None and context.run.trigger == "confirm"
    return [
        _judged(key, numbers[key], pin, context, excuses) if key in numbers else _missing(facts, key, pin, context)
        for key, pin in sorted(context.pins.items())
        if key in numbers or not partial
    ]


def _missing(facts: Facts, key: str, pin: Pin, context: CheckContext) -> CheckResult:
    step, leg, name = key.split("|")
    known = metric(plain_metric(name))
    unknown = Status.INSUFFICIENT_DATA
    pinned = f"{pin.who} pinned {key} ({amount(pin.value, known.unit)}, run {pin.run})"
    return CheckResult(
        check=NAME,
        # A step that did not end well says so itself; what the node runner measures may miss a short job.
        status=Status.FAILED if known.name not in _BY_RUNNER and _ended_well(facts, step, leg) else unknown,
        reason=f"{pinned}: the run has no such number",
        step=step,
        leg=leg,
        metric=known.name,
        gating=_rule(name, context).gating,
        values={"pinned": pin.value, "run": pin.run, "who": pin.who, "why": pin.why, "key": key},
    )


def _ended_well(facts: Facts, step: str, leg: str) -> bool:
    repeats = repeats_of(facts, step)
    return bool(repeats) and all(passed(facts, one.id, leg) for one in repeats)


def _rule(name: str, context: CheckContext) -> MetricRule:
    return context.policy.rule_of(name) or context.policy.metrics.get(plain_metric(name), MetricRule())


def _judged(key: str, value: float, pin: Pin, context: CheckContext, excuses: Excuses) -> CheckResult:
    step, leg, name = key.split("|")
    known = metric(plain_metric(name))
    rule = _rule(name, context)
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
