"""Is the run slower, bigger or worse than its accepted predecessors, by more than noise?"""

from statistics import median

from tipcflow.check.context import CheckContext
from tipcflow.check.node_speed import node_factor
from tipcflow.check.select import number
from tipcflow.config.policy import MetricRule, Policy
from tipcflow.domain import CheckResult, Facts, Status, medians_of
from tipcflow.parse import metric

# Family of metrics -> prefix of the check's name.
_NAMES = {"speed": "speed", "memory": "memory", "quality": "baseline"}
# 1.4826 * MAD is the standard deviation of a normal distribution.
_MAD_TO_SIGMA = 1.4826


def against_baseline(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per (step, leg, metric) that the policy compares.

    A change counts when it exceeds both the floor and `z` robust standard deviations of the earlier runs' medians.
    With too few runs the answer is `insufficient_data`, with the ratio to the last run for the reader. Steps and
    legs that did not end well are not compared: what they did is not the work that the baseline did. Of a speed,
    only what the node's own slowness (`node_speed`) does not explain counts.
    """
    slower = node_factor(facts, context)
    return [
        _judged(key, value, rule, context, slower)
        for key, value in medians_of(facts.measurements).items()
        if (rule := context.policy.metrics.get(key.rpartition("|")[2])) is not None and _ended_well(facts, key)
    ]


def _ended_well(facts: Facts, key: str) -> bool:
    step, leg, _ = key.split("|")
    status = facts.leg_status.get(f"{step}/{leg}") if leg else facts.step_status.get(step)
    return status is Status.PASS


def _judged(key: str, value: float, rule: MetricRule, context: CheckContext, slower: float) -> CheckResult:
    step, leg, name = key.split("|")
    known = metric(name)
    past = [run.medians[key] for run in context.history if key in run.medians][-context.policy.history :]
    unit = f" {known.unit}" if known.unit else ""
    values: dict[str, object] = {
        "value": value,
        "unit": known.unit,
        "n": len(past),
        "needed": context.policy.min_history,
    }

    def result(status: Status, reason: str) -> CheckResult:
        check = f"{_NAMES.get(known.family, 'baseline')}.{name}"
        return CheckResult(
            check=check,
            status=status,
            reason=reason,
            step=step,
            leg=leg,
            metric=name,
            gating=rule.gating,
            values=values,
        )

    if not past or median(past) == 0:
        return result(Status.INSUFFICIENT_DATA, f"{number(value)}{unit}; no earlier run to compare with")
    base = median(past)
    values |= {"baseline": base, "last": past[-1], "ratio": value / base}
    shown = f"{number(value)}{unit}, {value / base:.3f} x the baseline {number(base)}{unit}"
    if len(past) < context.policy.min_history:
        ratio = f"{value / past[-1]:.3f} x the last run" if past[-1] else "the last run had 0"
        missing = f"{len(past)} of {context.policy.min_history} earlier runs"
        return result(Status.INSUFFICIENT_DATA, f"{number(value)}{unit}, {ratio}; {missing}")
    limit = _limit(past, base, rule, known.family, context.policy)
    values["limit"] = limit
    change = (value - base) / abs(base)
    worse = change if known.better == "lower" else -change if known.better == "higher" else 0.0
    if worse > limit and known.family == "speed" and _explained(value / base, limit, slower):
        values["node_factor"] = slower
        why = f"the node itself was {slower:.2f} x slower at reading data and starting processes"
        return result(Status.INSUFFICIENT_DATA, f"{shown}, but {why}")
    if worse > limit:
        return result(Status.REGRESSION, f"{shown} of {len(past)} runs; {limit:.1%} would be noise")
    if worse < -limit:
        return result(Status.IMPROVEMENT, f"{shown} of {len(past)} runs; {limit:.1%} would be noise")
    return result(Status.PASS, f"{shown} of {len(past)} runs, within {limit:.1%}")


def _explained(ratio: float, limit: float, slower: float) -> bool:
    """Whether a speed is within its limit once the node's own slowness is taken out of it."""
    cost = ratio if ratio > 1 else 1 / ratio
    return cost / slower - 1 <= limit


def _limit(past: list[float], base: float, rule: MetricRule, family: str, policy: Policy) -> float:
    """The relative change beyond which it is no longer noise."""
    floors = {"speed": policy.floors.speed, "memory": policy.floors.memory}
    floor = rule.floor or floors.get(family, policy.floors.quality)
    spread = _MAD_TO_SIGMA * median(abs(one - base) for one in past) / abs(base)
    return max(floor, policy.z * spread)
