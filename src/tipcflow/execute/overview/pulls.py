"""Loads the attempts of pull requests and pushed commits."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tipcflow.domain import Run, Status
from tipcflow.execute.comparison.predecessors import accepted_before
from tipcflow.report.overview.pulls import MetricChange, PullChain, PullRow, Pulls, changes_of

if TYPE_CHECKING:
    from tipcflow.store import Store
    from tipcflow.store.github.attempts import PullAttempt, StartedChain

MOST = 50
# Chains of an attempt whose base is searched.
_COMPARED = 40


def load_pulls(store: "Store", *, repository: str = "", number: int | None = None, limit: int = MOST) -> Pulls:
    """Return the newest attempts; of one pull request, the runs of the newest attempt have bases and changes.

    Args:
        repository: `owner/name`; '' for all.
        number: pull request; 0 for pushes and merge groups; None for all.
    """
    attempts = store.pulls.newest(repository=repository, number=number, limit=limit)
    runs = store.runs.known({chain.run for attempt in attempts for chain in attempt.chains if chain.run})
    bases: dict[str, str] = {}
    changes: dict[str, tuple[MetricChange, ...]] = {}
    if repository and number and attempts:
        own = [runs[chain.run] for chain in attempts[0].chains if chain.run in runs]
        bases = {run.id: accepted_before(store, run) for run in own[:_COMPARED]}
        numbers = store.numbers.of({*bases, *filter(None, bases.values())})
        changes = {
            run: changes_of(numbers[base].values, numbers[run].values) for run, base in bases.items() if base
        }
    took = store.attempts.took([run.id for run in runs.values() if run.status is not None])
    rows = tuple(_row(attempt, runs, bases, changes, took) for attempt in attempts)
    return Pulls(repository=repository, number=number, attempts=rows)


def _row(
    attempt: "PullAttempt",
    runs: Mapping[str, Run],
    bases: Mapping[str, str],
    changes: Mapping[str, tuple[MetricChange, ...]],
    took: Mapping[str, float],
) -> PullRow:
    chains = [_chain(chain, runs.get(chain.run), bases, changes, took) for chain in attempt.chains]
    chains.sort(key=lambda chain: (-(chain.status.severity if chain.status else 0), chain.chain))
    names = ("repository", "number", "head_sha", "attempt", "state", "created_at", "ended_at")
    return PullRow(
        **{name: getattr(attempt, name) for name in names},
        why=attempt.cancel or attempt.body.unconcerned or attempt.body.reason,
        chains=tuple(chains),
        mode=attempt.body.mode,
    )


def _chain(
    chain: "StartedChain",
    run: Run | None,
    bases: Mapping[str, str],
    changes: Mapping[str, tuple[MetricChange, ...]],
    took: Mapping[str, float],
) -> PullChain:
    status = run.status if run else Status(chain.status) if chain.status in set(Status) else None
    return PullChain(
        chain=chain.chain,
        run=run.id if run else "",
        status=status,
        reason=chain.problem or (run.reason if run else ""),
        base=bases.get(chain.run, ""),
        selected=chain.selected,
        changes=changes.get(chain.run, ()),
        predicted_s=chain.predicted_s,
        took_s=took.get(chain.run, 0.0),
    )
