"""Loads the overview of flaky chains."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tipcflow.config.run_documents import SuiteDocument
from tipcflow.domain.run.names import ChainName
from tipcflow.execute.overview.proposals import load_proposals
from tipcflow.report.overview.flaky import (
    Correction,
    Flaky,
    FlakyChain,
    examples_of,
    nodes_of,
    split_by_file,
    wilson,
)
from tipcflow.report.overview.today import DAY_S, GREEN

if TYPE_CHECKING:
    from tipcflow.domain import Run
    from tipcflow.store import Store
    from tipcflow.store.queries.repeats import Repeated

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
    repeated = [each for each in every if suite in ("", ChainName.suite_of(each.chain))]
    # Of all suites: they count per node.
    mixed = store.repeats.mixed(since, [each.chain for each in every if each.mixed])
    files = _suite_files(store, mixed)
    mixed, corrections = split_by_file(mixed, files, GREEN)
    repeated = [_corrected(each, corrections.get(each.chain)) for each in repeated]
    examples = examples_of(mixed, GREEN, files)
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
        repeated=sum(each.groups > 0 for each in repeated),
        chains=tuple(chains),
        nodes=nodes_of(
            store.repeats.by_node(since),
            mixed,
            GREEN,
            store.repeats.repeated_by_node(since, [each.chain for each in every]),
        ),
        proposals=load_proposals(store, [run for run in mixed if suite in ("", run.suite)], now),
    )


def _suite_files(store: "Store", runs: Sequence["Run"]) -> dict[str, str]:
    """Return run -> what its suite file sets, as text."""
    suites = store.documents.of_runs(SuiteDocument, [run.id for run in runs])
    return {run: json.dumps(suite.root.settings(), sort_keys=True) for run, suite in suites.items()}


def _corrected(repeated: "Repeated", correction: Correction | None) -> "Repeated":
    if correction is None:
        return repeated
    return replace(
        repeated,
        groups=repeated.groups + correction.groups,
        mixed=repeated.mixed + correction.mixed,
        runs=repeated.runs + correction.runs,
        disagreeing=repeated.disagreeing + correction.disagreeing,
    )
