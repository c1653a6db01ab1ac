"""Loads the failures that a user may quarantine."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tipcflow.domain import CheckResult, Run
from tipcflow.report.overview.flaky import Proposal
from tipcflow.report.overview.proposals import proposals_of
from tipcflow.report.overview.today import GREEN

if TYPE_CHECKING:
    from tipcflow.store import Store

# Newest red runs of a chain whose check results are read.
_PER_CHAIN = 20


def load_proposals(store: "Store", mixed: Sequence[Run], now: float) -> tuple[Proposal, ...]:
    """Return the checks that pass and fail on the same commit and are not quarantined.

    Args:
        mixed: runs of groups of equal runs with both outcomes, oldest first.
    """
    by_chain: dict[str, list[Run]] = defaultdict(list)
    for run in mixed:
        if run.status not in GREEN:
            by_chain[run.chain].append(run)
    reds = [(run, store.checks.results(run.id)) for runs in by_chain.values() for run in runs[-_PER_CHAIN:]]
    active = [quarantine for quarantine in store.quarantines.all() if quarantine.is_active(now)]

    def is_open(run: Run, result: CheckResult) -> bool:
        line = (run.chain, run.mode, run.environment)
        return not any((q.chain, q.mode, q.environment) == line and q.covers(result) for q in active)

    opened = [(run, [result for result in results if is_open(run, result)]) for run, results in reds]
    return proposals_of(opened, mixed)
