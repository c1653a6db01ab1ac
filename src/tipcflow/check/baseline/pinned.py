"""Has a metric drifted from its pinned baseline?"""

from statistics import median

from tipcflow.check.baseline.attribution import Attribution, attribution_of
from tipcflow.check.context import CheckContext, Pin
from tipcflow.check.select import format_amount, passed, printed_units, repeats_of
from tipcflow.config.policy import MetricRule
from tipcflow.domain import CheckResult, Facts, MetricKey, Status, numbers_of, plain_metric
from tipcflow.domain.keys import SLOWEST
from tipcflow.domain.numbers.measured import ValueKey
from tipcflow.domain.numbers.metrics import metric
from tipcflow.domain.numbers.units import percentage
from tipcflow.domain.triggers import CONFIRM

NAME = "baseline.pinned"
# One slow run is not a drift: this one and the two before it have to agree.
RUNS = 3
# Not printed by the suite.
_BY_RUNNER = frozenset({"peak_rss", "peak_gpu", "wall_time"})


def against_pinned(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per pinned (step, leg, metric); one without a value of this run is `failed` if the step
    passed.

    Compared is the median of this run and the two before it with the pinned value; a change beyond the metric's
    floor counts. This alone finds a drift that is too slow for the other rules, whose history drifts along.
    """
    if not context.pins:
        return []
    excuses, numbers = attribution_of(facts, context), numbers_of(facts.measurements)
    units = printed_units(facts, context.prints.accuracy)
    # A confirm run only does what is suspected.
    partial = context.run is not None and context.run.trigger == CONFIRM
    return [
        _judged(key, numbers[key], pin, context, excuses, units.get(key.of(key.plain_metric)))
        if key in numbers
        else _missing(facts, key, pin, context)
        for key, pin in sorted(context.pins.items())
        if key in numbers or not partial
    ]


def _missing(facts: Facts, key: MetricKey, pin: Pin, context: CheckContext) -> CheckResult:
    definition = metric(key.plain_metric)
    unknown = Status.INSUFFICIENT_DATA
    pinned = f"{pin.who} pinned {key} ({format_amount(pin.value, definition.unit)}, run {pin.run})"
    return CheckResult(
        check=NAME,
        # A failed step has its own status; what the node runner measures may miss a short job.
        status=Status.FAILED if _is_expected(key) and _ended_well(facts, key.step, key.leg) else unknown,
        reason=f"{pinned}: no value in this run",
        step=key.step,
        leg=key.leg,
        metric=definition.name,
        gating=_rule(key.metric, context).gating,
        values={ValueKey.PINNED: pin.value, "run": pin.run, "who": pin.who, "why": pin.why, "key": str(key)},
    )


def _is_expected(key: MetricKey) -> bool:
    """Whether the suite prints the metric in every run; the slowest rank is known from 20 samples on."""
    return key.plain_metric not in _BY_RUNNER and not key.metric.endswith(SLOWEST)


def _ended_well(facts: Facts, step: str, leg: str) -> bool:
    repeats = repeats_of(facts, step)
    return bool(repeats) and all(passed(facts, repeat.id, leg) for repeat in repeats)


def _rule(name: str, context: CheckContext) -> MetricRule:
    return context.policy.rule_of(name) or context.policy.metrics.get(plain_metric(name), MetricRule())


def _judged(
    key: MetricKey, value: float, pin: Pin, context: CheckContext, excuses: Attribution, printed: str | None
) -> CheckResult:
    definition = metric(key.plain_metric)
    unit = definition.unit if printed is None else printed
    rule = _rule(key.metric, context)
    floor = context.policy.floor_of(key.metric)
    recent = [*context.past(key)[-(RUNS - 1) :], value]
    values = {
        ValueKey.PINNED: pin.value,
        "run": pin.run,
        "who": pin.who,
        "why": pin.why,
        "runs": len(recent),
        ValueKey.LIMIT: floor,
    }

    def result(status: Status, reason: str) -> CheckResult:
        """Return the result of the check about this metric."""
        return CheckResult(
            check=NAME,
            status=status,
            reason=reason,
            step=key.step,
            leg=key.leg,
            metric=definition.name,
            gating=rule.gating,
            values=values,
        )

    if len(recent) < RUNS or not pin.value:
        missing = f"{RUNS - len(recent)} more runs required" if pin.value else "the pinned value is 0"
        return result(Status.INSUFFICIENT_DATA, f"{format_amount(value, unit)}; {missing}")
    now = values[ValueKey.VALUE] = median(recent)
    change = (now - pin.value) / abs(pin.value)
    worse = {"lower": change, "higher": -change}.get(definition.better, 0.0)
    shown = (
        f"{format_amount(now, unit)} over {RUNS} runs, {now / pin.value:.3f} x what {pin.who} pinned "
        f"({format_amount(pin.value, unit)}, run {pin.run})"
    )
    excuse = excuses.node(key, 1 + worse, floor) if worse > floor else ""
    if excuse:
        # If a slow node does not make the run an infra_failure, the explained metric remains unknown.
        known_node = context.policy.node_health.gating
        status = Status.INSUFFICIENT_DATA if known_node else Status.UNCONFIRMED
        return result(status, f"{shown}, {excuse}")
    if worse > floor:
        return result(Status.REGRESSION, f"{shown}; limit {percentage(floor)}")
    return result(Status.IMPROVEMENT if worse < -floor else Status.PASS, shown)
