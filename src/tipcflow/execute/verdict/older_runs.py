"""Older runs for legs that the newest runs left out, such as legs that a budget drops.

Per step and leg, the newest `history` runs that executed it count. Up to LOOK_BACK x `history` runs are searched
for a leg that fewer of the newest runs executed.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tipcflow.domain import LOOK_BACK, LegKey, PastRun, StepKind, without_repeat

if TYPE_CHECKING:
    from tipcflow.store import Store

# Runs before those that are searched for baselines, which show whether a leg was executed at all.
_REMEMBERED = 1000
# Accepted runs that are comparable with a run, newest first, at most `limit`.
Accepted = Callable[..., list[str]]


def older_runs(
    store: "Store",
    run_id: str,
    newest: Sequence[PastRun],
    accepted: Accepted,
    *,
    limit: int,
    search: int = 0,
) -> dict[str, frozenset[LegKey]]:
    """Return older accepted run -> the steps and legs for which it counts; empty if the newest runs suffice.

    Args:
        run_id: the run that is compared: the steps and legs of its plan matter. '' for the next run of the chain,
            whose plan is assumed to be that of the newest one.
        newest: the newest `limit` accepted runs, or all, newest first.
        limit: number of runs with which each step and leg is compared.
        search: number of accepted runs that are searched; 0 for LOOK_BACK x `limit`.
    """
    if len(newest) < limit:
        return {}
    counts = Counter(part for past in newest for part in past.measured)
    lacking = {part for part in _parts_of(store, run_id or newest[0].run) if counts[part] < limit}
    if not lacking:
        return {}
    known = {past.run for past in newest}
    ids = [run_id for run_id in accepted(limit=search or LOOK_BACK * limit) if run_id not in known]
    older: dict[str, set[LegKey]] = {}
    for part, run_ids in store.history.executed(ids, lacking).items():
        for run_id in run_ids[: limit - counts[part]]:
            older.setdefault(run_id, set()).add(part)
    return {run_id: frozenset(parts) for run_id, parts in older.items()}


def lapsed_parts(
    store: "Store",
    run_id: str,
    history: Sequence[PastRun],
    accepted: Accepted,
    *,
    limit: int,
    needed: int,
) -> dict[LegKey, str]:
    """Return step or leg -> the last accepted run that executed it, where fewer than `needed` of the searched runs
    did, but an earlier one.

    Args:
        run_id: the run that is compared.
        history: the runs that it is compared with.
        limit: `history` of the policy.
    """
    if len(history) < limit:
        return {}
    counts = Counter(part for past in history for part in past.parts or ())
    young = {part for part in _parts_of(store, run_id) if counts[part] < needed}
    if not young:
        return {}
    ids = accepted(limit=LOOK_BACK * limit + _REMEMBERED)[LOOK_BACK * limit :]
    return {part: run_ids[0] for part, run_ids in store.history.executed(ids, young).items()} if ids else {}


def _parts_of(store: "Store", run_id: str) -> set[LegKey]:
    """Return the steps and legs, without repeats, that a run executes and whose metrics are compared."""
    try:
        plan = store.plans.get_or_none(run_id)
    except ValueError:  # of a newer version
        plan = None
    steps = [step for step in plan.steps if not step.not_run and step.kind is not StepKind.PREPARE] if plan else []
    parts = {LegKey(without_repeat(step.id)) for step in steps}
    return parts | {
        LegKey(without_repeat(step.id), leg.id) for step in steps for leg in step.legs if not leg.not_run
    }
