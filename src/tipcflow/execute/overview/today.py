"""Loads the overview Today."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.domain import Run, Status
from tipcflow.domain.numbers.changes import Origin, changes
from tipcflow.execute.overview.nodes import MOST_ACTIVE, load_queue, load_slurm_queue
from tipcflow.report.overview.today import (
    DAY_S,
    GREEN,
    Running,
    State,
    Today,
    builds_of,
    make_problem,
    shared_suspects,
    worst_first,
)

if TYPE_CHECKING:
    from tipcflow.store import Store
    from tipcflow.store.queries.states import Active, Line

_LISTED = 50
# What of a run's origin the overview compares.
_ORIGIN = ("framework", "suite_commit", "suite_sha256")


@dataclass(frozen=True)
class Scope:
    """Which chains an overview includes; '' includes all.

    Attributes:
        chain: part of a chain's name, in any case.
        build: framework with its version.
    """

    suite: str = ""
    chain: str = ""
    mode: str = ""
    cluster: str = ""
    build: str = ""

    def includes(self, line: "Line") -> bool:
        """Whether a line is included."""
        exact = ((self.suite, line.suite), (self.mode, line.mode), (self.cluster, line.cluster))
        named = self.chain.lower() in line.chain.lower() and self.build in ("", line.framework)
        return named and all(wanted in ("", value) for wanted, value in exact)


def load_today(
    store: "Store",
    scope: Scope = Scope(),
    *,
    days: float = 14,
    new_days: float = 7,
    now: float | None = None,
    owns: Callable[[str], bool] | None = None,
) -> Today:
    """Return the overview.

    Args:
        owns: whether it includes a chain, in addition to the scope; runs without a status are not affected.
        days: only chains with a run in the last N days; the others are stale.
        new_days: a problem is new if its first bad run is at most N days old.
        now: seconds since the epoch; None for the database's clock.
    """
    now = store.now() if now is None else now
    lines = store.states.lines()
    if scope != Scope() or owns is not None:
        lines = [line for line in lines if scope.includes(line) and (owns is None or owns(line.chain))]
    oldest = now - days * DAY_S
    recent = [line for line in lines if line.created_at >= oldest]
    marked = store.check_history.quarantined([line.run for line in lines if line.status in GREEN])
    states = {line.run: state_of(line, quarantined=line.run in marked) for line in lines}
    problems = worst_first(
        [
            make_problem(
                states[red.run.id], red.run, red.good, red.first, _suspects(red.good, red.first),
                since=now - new_days * DAY_S,
            )
            for red in store.states.reds(recent)
        ]
    )  # fmt: skip
    active, total = store.states.active(MOST_ACTIVE)
    starts = {each.run: each.expected_start_at for each in load_queue(store, active, now)}
    starts |= {each.run: each.expected_start_at for each in load_slurm_queue(store)}
    active = active[:_LISTED]
    stale = sorted((line for line in lines if line.created_at < oldest), key=lambda line: line.created_at)
    return Today(
        at=now,
        days=days,
        new_days=new_days,
        builds=builds_of([states[line.run] for line in recent], problems),
        problems=problems,
        shared=shared_suspects(problems),
        quarantined=tuple(states[line.run] for line in recent if line.run in marked),
        stale=tuple(states[line.run] for line in stale),
        running=tuple(_running(each, starts.get(each.run.id)) for each in active),
        running_total=total,
    )


def state_of(line: "Line", *, quarantined: bool) -> State:
    """Return a line as the overview shows it."""
    run, chain, suite, mode, cluster, environment, status, framework, created_at, *_ = line
    return State(chain, suite, mode, cluster, environment, framework, status, run, created_at, quarantined)


def _suspects(good: Run | None, first: Run) -> Sequence[str]:
    """Return what changed in framework and suite; a node that failed is in the reason of its run."""
    if good is None or first.status is Status.INFRA_FAILURE:
        return ()
    return changes(*(Origin(**{name: getattr(run, name) for name in _ORIGIN}) for run in (good, first)))


def _running(active: "Active", expected_start_at: float | None) -> Running:
    run, usual = active.run, active.usual_s
    began = expected_start_at if active.waits else active.started_at
    return Running(
        run=run.id,
        chain=run.chain,
        mode=run.mode,
        cluster=run.cluster,
        trigger=run.trigger,
        created_at=run.created_at,
        started_at=active.started_at,
        waits=active.waits,
        expected_start_at=expected_start_at,
        expected_end_at=None if began is None or usual is None else began + usual,
    )
