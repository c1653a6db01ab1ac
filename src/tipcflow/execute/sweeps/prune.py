"""Old files of runs: which may be removed, how large they are, and their removal. Rows of the database stay."""

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain import InfraError, Run
from tipcflow.domain.alert.entry import OPEN_STATES
from tipcflow.execute.objects.object_store import ObjectStore, StoredObject
from tipcflow.execute.objects.shared_events import OBJECTS as EVENTS

if TYPE_CHECKING:
    from tipcflow.store import Store

RUNS = "runs"


@dataclass(frozen=True)
class OldRun:
    """Files of a run that may be removed.

    Attributes:
        files, bytes: in the folder of the run on this machine.
        objects: names in the object store; `object_bytes` is their size.
    """

    run: Run
    files: int = 0
    bytes: int = 0
    objects: tuple[str, ...] = ()
    object_bytes: int = 0


@dataclass(frozen=True)
class OldRuns:
    """Runs whose files may be removed, oldest first; and reason -> number of runs that are old but stay."""

    runs: tuple[OldRun, ...]
    kept: Mapping[str, int] = field(default_factory=dict)

    @property
    def files(self) -> int:
        """Number of files on this machine."""
        return sum(old.files for old in self.runs)

    @property
    def bytes(self) -> int:
        """Size of the files on this machine."""
        return sum(old.bytes for old in self.runs)

    @property
    def objects(self) -> int:
        """Number of objects."""
        return sum(len(old.objects) for old in self.runs)

    @property
    def object_bytes(self) -> int:
        """Size of the objects."""
        return sum(old.object_bytes for old in self.runs)


def find_old_runs(store: "Store", home: Path, objects: ObjectStore | None, *, before: float) -> OldRuns:
    """Return the runs with files that ended before a time and that nothing refers to.

    Files of runs that the database does not know stay: they may be of another database.

    Args:
        objects: the object store, None without one.
        before: seconds since the epoch.

    Raises:
        InfraError: the object store does not respond.
    """
    folders = _folders(home)
    stored = _objects(objects) if objects is not None else {}
    needed = _needed(store)
    known = store.runs.known({*folders, *stored})
    old, kept = [], Counter[str]()
    for name in {*folders, *stored}:
        run = known.get(name)
        if run is None:
            kept["of runs that the database does not have"] += 1
        elif run.ended_at is None:
            kept["of runs without a status"] += run.created_at < before
        elif run.ended_at < before:
            if reason := needed.get(name, ""):
                kept[reason] += 1
                continue
            sizes, own = file_sizes(folders[name]) if name in folders else [], stored.get(name, [])
            names = tuple(sorted(each.name for each in own))
            old.append(OldRun(run, len(sizes), sum(sizes), names, sum(each.bytes for each in own)))
    old.sort(key=lambda each: (each.run.ended_at or 0.0, each.run.id))
    return OldRuns(tuple(old), {reason: count for reason, count in sorted(kept.items()) if count})


def remove_old_runs(store: "Store", home: Path, objects: ObjectStore | None, old: Iterable[OldRun]) -> list[str]:
    """Remove the files of runs; return a line for each run whose files could not be removed.

    A run that meanwhile continues, or that a decision refers to, keeps its files.
    """
    problems, needed = [], _needed(store)
    for each in old:
        run = store.runs.get_or_none(each.run.id)
        if run is None or run.ended_at != each.run.ended_at or run.id in needed:
            problems.append(f"{each.run.id}: has changed and stays")
            continue
        try:
            if objects is not None:
                objects.remove(each.objects)
            folder = home / RUNS / run.id
            if folder.is_dir():
                shutil.rmtree(folder)
        except InfraError as error:
            problems.append(f"{run.id}: {error.message}")
        except OSError as error:
            problems.append(f"{run.id}: {error.strerror or error} ({error.filename})")
    return problems


def _needed(store: "Store") -> dict[str, str]:
    """Return run -> the reason why its files stay, whatever its age."""
    needed = dict.fromkeys((lease.run for lease in store.leases.all()), "of runs that hold slots")
    for quarantine in store.quarantines.all():
        needed |= dict.fromkeys((quarantine.run, *quarantine.evidence), "of quarantines")
    for alert in store.tracked_alerts.all(states=OPEN_STATES):
        reporting = (event.run for event in store.tracked_alerts.events(alert.number) if event.run)
        needed |= dict.fromkeys((alert.first, alert.newest, alert.last_good, *reporting), "of open alerts")
    needed |= dict.fromkeys(store.baselines.runs(), "of baselines")
    return needed


def _objects(store: ObjectStore) -> dict[str, list[StoredObject]]:
    """Return run -> its files and events in the object store."""
    found: dict[str, list[StoredObject]] = {}
    for prefix in (RUNS, EVENTS):
        for each in store.below(prefix):
            found.setdefault(each.name.split("/")[1], []).append(each)
    return found


def _folders(home: Path) -> dict[str, Path]:
    """Return run -> its folder; a symbolic link is not a folder of a run."""
    folder = home / RUNS
    entries = folder.iterdir() if folder.is_dir() else ()
    return {path.name: path for path in entries if path.is_dir() and not path.is_symlink()}


def file_sizes(folder: Path) -> list[int]:
    """Return the sizes of all files below a folder; symbolic links are not followed."""
    sizes = []
    for parent, _, files in os.walk(folder):
        sizes += [Path(parent, name).lstat().st_size for name in files]
    return sizes
