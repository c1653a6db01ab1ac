"""Metrics that are part of another metric: a change that is negligible for the whole does not count."""

from collections.abc import Mapping
from statistics import median

from tipcflow.check.context import CheckContext
from tipcflow.config.policy import MetricRule
from tipcflow.domain import MetricKey
from tipcflow.domain.numbers.units import percentage

# A change of a part counts when it is this share of what counts for the whole.
_SHARE = 0.5


def negligible_reason(
    key: MetricKey, change: float, rule: MetricRule, numbers: Mapping[MetricKey, float], context: CheckContext
) -> str:
    """Return why a change is negligible, '' if it is not or the metric is not part of another one.

    Args:
        change: in the metric's unit, which is that of the whole.
        numbers: of the run (`numbers_of`).
    """
    if not rule.part_of:
        return ""
    whole = key.of(rule.part_of)
    past = context.past(whole)
    usual = median(past) if past else numbers.get(whole, 0.0)
    least = _SHARE * context.policy.floor_of(rule.part_of)
    if usual <= 0 or abs(change) >= least * usual:
        return ""
    return f"the difference is {percentage(abs(change) / usual)} of {rule.part_of}, less than {percentage(least)}"
