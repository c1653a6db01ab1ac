"""Removes old files of runs from TIPCFLOW_HOME of this machine if the object store has them.

Without an object store, the files here are the only ones: `tipcflow prune` removes them.
"""

import contextlib
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.execute.collect.kept_files import CERTIFICATE, SIGNATURE, hashes_in
from tipcflow.execute.collect.run_files import RunFiles, run_prefix
from tipcflow.execute.events import EVENTS
from tipcflow.execute.objects.object_store import ObjectStore

if TYPE_CHECKING:
    from tipcflow.domain import Run
    from tipcflow.store import Store

# After this time since the run's end and the last change of its files. Late logs are fetched for 14 days.
FILES_S = 30 * 24 * 3600.0
# Written by us beside the files of an attempt.
_MARK = ".attempt"


def old_folders(home: Path, *, before: float) -> list[Path]:
    """Return the folders of runs whose files, except events, were all last written before a time; in any order.

    A run whose files stay must not keep those of other runs here when the time for a search is limited.
    """
    folders = [path for path in (home / "runs").glob("*") if path.is_dir() and not path.is_symlink()]
    old = [folder for folder in folders if (files := _files(folder)) and _newest(files) < before]
    return random.sample(old, len(old))


def remove_stored_files(
    store: "Store", objects: ObjectStore, home: Path, folders: list[Path], *, before: float, until: float
) -> int:
    """Remove the files of ended runs that the object store has, except events; return the number of these runs.

    A folder with any other file stays as it is, and so do those of runs that are unknown here, or hold slots.

    Args:
        before: end of the newest run whose files are removed, seconds since the epoch.
        until: deadline by `time.monotonic`; folders that are left stay until the next call.

    Raises:
        InfraError: the object store or the database cannot be reached.
    """
    known = store.runs.known([folder.name for folder in folders])
    removed = 0
    for folder in folders:
        if time.monotonic() > until:
            break
        run = known.get(folder.name)
        if run is None or not _has_ended(store, run, before) or not _is_stored(store, objects, home, folder):
            continue
        # Again, because hashing takes a while: a cleared task may have continued the run.
        if _has_ended(store, run, before) and _newest(_files(folder)) < before:
            _remove(folder)
            removed += 1
    return removed


def _has_ended(store: "Store", run: "Run", before: float) -> bool:
    now = store.runs.get_or_none(run.id)
    is_held = any(lease.run == run.id for lease in store.leases.all())
    return now is not None and now.status is not None and (now.ended_at or before) < before and not is_held


def _is_stored(store: "Store", objects: ObjectStore, home: Path, folder: Path) -> bool:
    """Whether the object store has every file of the folder, except events and marks, with its content."""
    sizes = {each.name: each.bytes for each in objects.below(run_prefix(folder.name))}
    kept = RunFiles(store, folder.name, home, objects).kept.values()
    stored = {file.sha256 for file in kept if file.object and sizes.get(file.object) == file.bytes}
    hidden = any(path.name.startswith(".") and path.name != _MARK for path in _files(folder))
    if hidden or any(path.is_symlink() for path in _files(folder)):
        return False
    if not all(_is_own_stored(objects, folder, name) for name in (CERTIFICATE, SIGNATURE)):
        return False
    return set(hashes_in(folder).values()) <= stored


def _is_own_stored(objects: ObjectStore, folder: Path, name: str) -> bool:
    """Whether the object store has the run's certificate or signature of this folder, or a newer one."""
    path = folder / name
    if not path.is_file():
        return True
    known = objects.find(f"{run_prefix(folder.name)}/{name}")
    if known is None:
        return False
    return objects.read(known.name) == path.read_bytes() or known.changed_at > path.stat().st_mtime


def _files(folder: Path) -> list[Path]:
    """Return all files below a run's folder, except its events, which have a time of their own."""
    return [path for path in folder.rglob("*") if not path.is_dir() and path != folder / EVENTS]


def _newest(files: list[Path]) -> float:
    newest = 0.0
    for path in files:
        with contextlib.suppress(FileNotFoundError):  # removed by another process
            newest = max(newest, path.lstat().st_mtime)
    return newest


def _remove(folder: Path) -> None:
    for path in _files(folder):
        path.unlink(missing_ok=True)
    folders = [path for path in folder.rglob("*") if path.is_dir()]
    for path in sorted(folders, key=lambda path: -len(path.parts)):
        with contextlib.suppress(OSError):  # a file has been added
            path.rmdir()
    with contextlib.suppress(OSError):  # its events are still there
        folder.rmdir()
