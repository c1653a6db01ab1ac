"""Changes between the last good and the first bad run of a regressed metric."""

import math

from tipcflow.check.context import CheckContext
from tipcflow.domain import Facts
from tipcflow.domain.numbers.changes import changes, origin_of, since


def changed_since(key: str, facts: Facts, context: CheckContext, first_bad: int | None = None) -> str:
    """Return the changes in one phrase; '' without an earlier run, or if the run itself is unknown.

    Args:
        key: of `numbers_of`.
        first_bad: index in `context.past(key)` of the first run of the new level; this run without it.
    """
    known = [run for run in context.history if math.isfinite(run.medians.get(key, math.nan))]
    known = known[-context.policy.history :]
    bad = len(known) if first_bad is None else min(first_bad, len(known))
    if context.run is None or bad < 1:
        return ""
    before = known[bad - 1]
    now = known[bad].origin if bad < len(known) else origin_of(context.run, facts.node_facts)
    return since(before.run, changes(before.origin, now))
