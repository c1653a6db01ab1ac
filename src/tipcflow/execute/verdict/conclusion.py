"""The exit code of a run: whether an unconfirmed regression blocks, according to the run's policy."""

from typing import TYPE_CHECKING

from tipcflow.domain import Run, Status, exit_code

if TYPE_CHECKING:
    from tipcflow.store import Store

_NEUTRAL = "neutral"
# A step, leg or check with such a status blocks, whatever the policy says about unconfirmed results.
_BLOCKS = frozenset({Status.INFRA_FAILURE, Status.CANCELLED})


def is_neutral(store: "Store", run: Run) -> bool:
    """Whether a run is `unconfirmed`, its policy does not block on that, and nothing else failed."""
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
    """Return the exit code of an ended run: that of its status, 0 for a neutral run, 2 without a status."""
    return exit_code(run.status or Status.INFRA_FAILURE, neutral=is_neutral(store, run))
