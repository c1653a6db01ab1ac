"""Release of quarantines after enough consecutive clean runs on newer commits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.domain import CheckResult, Run, Status
from tipcflow.domain.quarantine.entry import Quarantine

if TYPE_CHECKING:
    from tipcflow.store import Store
    from tipcflow.store.queries.check_history import CheckedRun

# Author of releases that no user made.
TIPCFLOW = "tipcflow"
_GREEN = (Status.PASS, Status.IMPROVEMENT)
_RED = (Status.FAILED, Status.REGRESSION, Status.UNCONFIRMED)


@dataclass(frozen=True)
class Progress:
    """What runs since the quarantine have shown.

    Attributes:
        clean: number of consecutive clean runs on newer commits, up to now.
        failed: runs since the quarantine that failed the check with its signature, newest first.
    """

    clean: int
    failed: tuple[str, ...]


def release_clean(store: "Store", run: Run) -> None:
    """Release the quarantines of a run's chain, mode and environment class that have their clean runs."""
    now = store.now()
    for quarantine in store.quarantines.of_line(run.chain, run.mode, run.environment):
        if quarantine.is_active(now):
            _release(store, quarantine, now)


def release_all_clean(store: "Store") -> None:
    """Release all quarantines that have their clean runs."""
    now = store.now()
    for quarantine in store.quarantines.all():
        if quarantine.is_active(now):
            _release(store, quarantine, now)


def progress_of(store: "Store", quarantine: Quarantine) -> Progress:
    """Return what the runs since a quarantine have shown."""
    checked = store.check_history.of_line(
        quarantine.chain, quarantine.mode, quarantine.environment, quarantine.check
    )
    return progress_in(quarantine, checked)


def progress_in(quarantine: Quarantine, checked: Sequence["CheckedRun"]) -> Progress:
    """Return what these runs have shown of a quarantine.

    A run is clean if every result of the check in its scope passed. A run of framework build, suite commit and
    content that had been run before the quarantine proves nothing: an older commit may never have failed. A run
    without a definite result neither counts nor ends a sequence; a red one ends it, whatever its signature.

    Args:
        checked: newest first.
    """
    known = {each.tested for each in checked if each.run.created_at <= quarantine.created_at}
    since = [each for each in checked if each.run.created_at > quarantine.created_at]
    clean = 0
    for each in since:
        own = [result for result in each.results if quarantine.is_about(result)]
        if any(result.status in _RED for result in own):
            break
        clean += _is_clean(own) and each.tested not in known
    failed = tuple(each.run.id for each in since if any(quarantine.covers(result) for result in each.results))
    return Progress(clean, failed)


def _is_clean(results: Sequence[CheckResult]) -> bool:
    return bool(results) and all(result.status in _GREEN for result in results)


def _release(store: "Store", quarantine: Quarantine, now: float) -> None:
    clean = progress_of(store, quarantine).clean
    if clean >= quarantine.clean_runs:
        why = f"{clean} consecutive clean runs on newer commits; {quarantine.clean_runs} required"
        store.quarantines.release(quarantine.number, at=now, who=TIPCFLOW, why=why)
