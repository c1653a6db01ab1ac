"""What a run's status means for whoever waits for it: whether a doubt blocks, as the run's policy says."""

from typing import TYPE_CHECKING

from tipcflow.domain import Run, Status, exit_code

if TYPE_CHECKING:
    from tipcflow.store import Store

_NEUTRAL = "neutral"
# Such a status of a step, leg or check blocks, whatever the policy says of doubts.
_BLOCKS = frozenset({Status.INFRA_FAILURE, Status.CANCELLED})


def is_neutral(store: "Store", run: Run) -> bool:
    """Whether a run is `unconfirmed`, its policy says that this does not block, and nothing else is wrong."""
    if run.status is not Status.UNCONFIRMED:
        return False
    kept = store.several_documents(run.id, ("policy", "leftovers"))
    if (kept.get("policy") or {}).get("unconfirmed") != _NEUTRAL or kept.get("leftovers"):
        return False
    said = [status for status, _ in store.step_statuses(run.id).values()]
    said += [status for status, _ in store.leg_statuses(run.id).values()]
    said += [result.status for result in store.check_results(run.id) if result.gating]
    return not _BLOCKS.intersection(said)


def exit_code_of(store: "Store", run: Run) -> int:
    """The exit code for a run that has ended: that of its status, 0 for a neutral doubt, 2 without a status."""
    return exit_code(run.status or Status.INFRA_FAILURE, neutral=is_neutral(store, run))
