"""Remove files below TIPCFLOW_HOME and objects that are no longer useful, and roll up old samples."""

from contextlib import suppress
from pathlib import Path

from tipcflow.domain import InfraError
from tipcflow.domain.run_documents import SourceDocument
from tipcflow.execute.objects.object_store import ASIDE, object_store
from tipcflow.execute.objects.shared_events import OBJECTS as EVENTS
from tipcflow.execute.source.cache import OBJECTS as SUITES
from tipcflow.execute.source.wheel import OBJECTS as WHEELS
from tipcflow.execute.sweeps.maintenance import DAY_S, SNAPSHOT_S, Upkeep
from tipcflow.execute.sweeps.node_folders import BUILD_DAYS
from tipcflow.execute.sweeps.old_events import EVENTS_S, remove_old_events
from tipcflow.store.outbox import REPLAY_DAYS


def retention(upkeep: Upkeep) -> str:
    """Remove unused suite snapshots and the progress files of runs that ended long ago.

    Raw samples of old runs are rolled up: their summaries stay. Handled webhook deliveries lose their event data.
    """
    unfinished = [run.id for run in upkeep.store.runs.unfinished()]
    sources = [upkeep.store.documents.get(run, SourceDocument) for run in unfinished]
    used = {source.sha256 for source in sources if source}
    snapshots = _snapshots(upkeep, used)
    wheels = _wheels(upkeep)
    events = remove_old_events(upkeep.home, before=upkeep.now - EVENTS_S)
    upkeep.store.outbox.shorten()
    upkeep.store.pulls.forget(REPLAY_DAYS)
    upkeep.store.messages.forget(REPLAY_DAYS)
    rolled = upkeep.store.rollup.apply(now=upkeep.now)
    objects = _objects(upkeep, used)
    more = (f", {wheels} wheels" if wheels else "") + (
        f", {objects} objects of the object store" if objects else ""
    )
    return (
        f"removed: {snapshots} files of suite snapshots, progress of {events} runs{more}; "
        f"rolled up: {rolled.samples} samples of {rolled.runs} runs"
    )


def _snapshots(upkeep: Upkeep, used: set[str]) -> int:
    """Remove all files of a snapshot together: any of them may be the most recently used one."""
    by_hash: dict[str, list[Path]] = {}
    folder = upkeep.home / "suites" / "archives"
    for path in folder.iterdir() if folder.is_dir() else ():
        # Includes the temporary file of a process that was killed while writing: .<hash>.tar.gz.<pid>
        by_hash.setdefault(path.name.lstrip(".").partition(".")[0], []).append(path)
    removed = 0
    for sha256, paths in by_hash.items():
        if sha256 not in used and all(_older(path, upkeep.now - SNAPSHOT_S) for path in paths):
            for path in paths:
                path.unlink(missing_ok=True)
                removed += 1
    return removed


def _wheels(upkeep: Upkeep) -> int:
    """Remove wheels of framework builds that no run has fetched for a month, and unfinished downloads.

    Wheels directly in the folder belong to the operator: requests name them.
    """
    removed = 0
    folder = upkeep.home / "wheels"
    for path in sorted(folder.glob("*/*.whl")):
        if _older(path, upkeep.now - BUILD_DAYS * DAY_S):
            path.unlink(missing_ok=True)
            removed += 1
            with suppress(OSError):  # another file is in the folder
                path.parent.rmdir()
    for path in sorted(folder.glob(".*")):
        if path.is_file() and _older(path, upkeep.now - DAY_S):
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def _objects(upkeep: Upkeep, used: set[str]) -> int:
    """Remove objects after the same times as files: unused snapshots and wheels, events, interrupted transfers.

    Logs and certificates of runs stay, as in TIPCFLOW_HOME. A run that uses a snapshot or a wheel writes it again
    if it is not new, so that the time of an object is that of its last use.
    """
    objects = object_store()
    if objects is None:
        return 0
    ages = {SUITES: SNAPSHOT_S, WHEELS: BUILD_DAYS * DAY_S, EVENTS: EVENTS_S, ASIDE: DAY_S}
    try:
        old = [
            each.name
            for folder, age_s in ages.items()
            for each in objects.below(folder)
            if each.changed_at < upkeep.now - age_s and each.name.split("/")[1].partition(".")[0] not in used
        ]
        return objects.remove(old)
    except InfraError as error:
        upkeep.report(f"objects are not removed: {error.message}")
        return 0


def _older(path: Path, than: float) -> bool:
    try:
        return path.stat().st_mtime < than
    except FileNotFoundError:  # removed by another process in the meantime
        return False
