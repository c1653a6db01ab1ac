"""Remove files below TIPCFLOW_HOME that are no longer useful, and roll up old samples."""

from pathlib import Path

from tipcflow.execute.events import events_path
from tipcflow.execute.sweeps.maintenance import EVENTS_S, SNAPSHOT_S, Upkeep


def retention(upkeep: Upkeep) -> str:
    """Remove unused suite snapshots and the progress files of runs that ended long ago.

    Raw samples of old runs are rolled up: their summaries stay.
    """
    unfinished = [run.id for run in upkeep.store.unfinished_runs()]
    used = {str((upkeep.store.document(run, "source") or {}).get("sha256", "")) for run in unfinished}
    snapshots = _snapshots(upkeep, used)
    events = _events(upkeep, {events_path(upkeep.home, run) for run in unfinished})
    rolled = upkeep.store.roll_up(now=upkeep.now)
    return (
        f"removed: {snapshots} files of suite snapshots, progress of {events} runs; "
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


def _events(upkeep: Upkeep, living: set[Path]) -> int:
    removed = 0
    for path in sorted((upkeep.home / "runs").glob("*/events.jsonl")):
        if path not in living and _older(path, upkeep.now - EVENTS_S):
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def _older(path: Path, than: float) -> bool:
    try:
        return path.stat().st_mtime < than
    except FileNotFoundError:  # removed by another process in the meantime
        return False
