"""Changes between the last good and the first bad run of a regressed metric."""

import math

from tipcflow.check.context import CheckContext
from tipcflow.domain import Facts, MetricKey
from tipcflow.domain.numbers.changes import changes, origin_of, since


def changed_since(key: MetricKey, facts: Facts, context: CheckContext, first_bad: int | None = None) -> str:
    """Return the changes in one phrase; '' without an earlier run, if the run itself is unknown, or for a metric
    that is not compared with the history.

    Args:
        key: of `numbers_of`.
        first_bad: index in `context.past(key)` of the first run of the new level; this run without it.
    """
    runs = [run for run in context.history if math.isfinite(run.medians.get(key, math.nan))]
    runs = runs[-context.policy.history :]
    bad = len(runs) if first_bad is None else min(first_bad, len(runs))
    if context.run is None or bad < 1 or context.runs_of(key) is not context.history:
        return ""
    before = runs[bad - 1]
    now = runs[bad].origin if bad < len(runs) else origin_of(context.run, facts.node_facts)
    return since(before.run, changes(before.origin, now))
