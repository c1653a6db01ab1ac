"""Loads the overview of flaky chains."""

from typing import TYPE_CHECKING

from tipcflow.domain.run.names import ChainName
from tipcflow.execute.overview.proposals import load_proposals
from tipcflow.report.overview.flaky import Flaky, FlakyChain, examples_of, nodes_of, wilson
from tipcflow.report.overview.today import DAY_S, GREEN

if TYPE_CHECKING:
    from tipcflow.store import Store

# Longest period, days: longer ones would be slow to read.
LONGEST = 400


def load_flaky(store: "Store", *, days: float = 90, suite: str = "", now: float | None = None) -> Flaky:
    """Return the overview of runs of the last N days.

    Args:
        suite: only chains of this suite; '' for all. Nodes are those of all suites.
        now: seconds since the epoch; None for the database's clock.
    """
    now = store.now() if now is None else now
    since = now - days * DAY_S
    every = store.repeats.chains(since)
    repeated = [each for each in every if suite in ("", ChainName.parse(each.chain).suite)]
    # Of all suites: they count per node.
    mixed = store.repeats.mixed(since, [each.chain for each in every if each.mixed])
    examples = examples_of(mixed, GREEN)
    chains = [
        FlakyChain(
            chain=each.chain,
            groups=each.groups,
            mixed=each.mixed,
            disagreeing=wilson(each.disagreeing, each.runs),
            examples=examples.get(each.chain, ()),
        )
        for each in repeated
        if each.mixed
    ]
    chains.sort(key=lambda each: (-each.disagreeing.low, -each.disagreeing.rate, each.chain))
    return Flaky(
        at=now,
        days=days,
        repeated=len(repeated),
        chains=tuple(chains),
        nodes=nodes_of(
            store.repeats.by_node(since),
            mixed,
            GREEN,
            store.repeats.repeated_by_node(since, [each.chain for each in every]),
        ),
        proposals=load_proposals(store, [run for run in mixed if suite in ("", run.suite)], now),
    )
