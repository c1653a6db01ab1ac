"""Statuses of runs that the database could not store: files until a later command or task can store them.

Each run reserves its file at its start, so that even a full disk can store the status. The run's process holds
a lock on that file, which the kernel releases when the process ends, however it ends: a run without a status whose
file is not locked has no controller any more. The lock is `flock` on that open file, not filelock's, which locks a
path: this file is renamed while it is locked, holds the status, and other processes only test its lock.
"""

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tipcflow.domain import Run, Status, TipcflowError

if TYPE_CHECKING:
    from tipcflow.store import Store

FOLDER, RESERVED, LEFT = "unfinished", ".reserved", ".left"
ROOM = 4096
# Begins a file whose run holds the lock; files of earlier versions are not locked.
LOCKED = b"locked\n"
NO_CONTROLLER = "tipcflow run ended without a verdict: it was killed, or its machine restarted"
_COLLECT = "`tipcflow nodes reap` collects its logs and ends its jobs"
OLD_S = 30 * 86400.0


def reserve(home: Path, run: str) -> BinaryIO | None:
    """Reserve the space for a run's status and lock it; return the file, which must stay open during the run.

    None on a disk that is already full, which is reported elsewhere, or without file locks.
    """
    with contextlib.suppress(OSError):
        folder = home / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        own = folder / f".{run}"
        handle = own.open("wb")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            handle.write(LOCKED.ljust(ROOM))
            handle.flush()
            own.replace(folder / f"{run}{RESERVED}")  # visible only when locked
        except OSError:
            handle.close()
            own.unlink(missing_ok=True)
            raise
        return handle
    return None


def release(home: Path, run: str, held: BinaryIO | None = None) -> None:
    """Remove the file of a run whose status is in the database.

    Args:
        held: the file as `reserve` returned it.
    """
    with contextlib.suppress(OSError):
        (home / FOLDER / f"{run}{RESERVED}").unlink(missing_ok=True)
    if held is not None:
        held.close()


def keep(home: Path, run: str, status: Status, reason: str, *, lost: tuple[str, Run | None] | None = None) -> bool:
    """Store a run's status in its file; return whether that succeeded (the disk may be full, too).

    Args:
        lost: (URL without password, the run as it began) of a database that lost the run: a new database at that
            URL gets the run, too.
    """
    try:
        folder = home / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        content: dict[str, Any] = {"status": status.value, "reason": reason[: ROOM // 8], "ended_at": time.time()}
        if lost is not None and lost[1] is not None:
            content |= {"database": lost[0], "run": lost[1].model_dump(mode="json")}
        reserved = folder / f"{run}{RESERVED}"
        # Written in place: the reserved file needs no further space.
        with open(reserved, "r+b" if reserved.exists() else "wb") as handle:  # noqa: PTH123
            handle.write(json.dumps(content).encode().ljust(ROOM))
            handle.flush()
            os.fsync(handle.fileno())
        reserved.replace(folder / f"{run}.json")
    except OSError:
        return False
    return True


def apply(home: Path, store: "Store") -> list[str]:
    """Give runs without a status the stored one, or `infra_failure` if their controller has ended; return them."""
    applied = _without_controller(home, store)
    _forget_reserved(home, store)
    for path in sorted((home / FOLDER).glob("*.json")):
        try:
            spooled = json.loads(path.read_text())
            if spooled.get("database") == store.url and store.runs.get_or_none(path.stem) is None:
                store.runs.create(Run.model_validate(spooled["run"]))
            if store.runs.get(path.stem).status is None:
                store.runs.finish(
                    path.stem, Status(spooled["status"]), str(spooled["reason"]), float(spooled["ended_at"])
                )
                applied.append(path.stem)
        except TipcflowError:
            continue  # another database: the file stays for it
        except (OSError, ValueError, KeyError, TypeError):
            pass  # incomplete file of a full disk
        path.unlink(missing_ok=True)
    return applied


def _forget_reserved(home: Path, store: "Store") -> None:
    """Remove reserved files of runs that have a status, or that were killed long ago."""
    for path in (home / FOLDER).glob(f"*{RESERVED}"):
        with contextlib.suppress(TipcflowError, OSError):
            old = time.time() - path.stat().st_mtime > OLD_S
            if old or store.runs.get(path.name.removesuffix(RESERVED)).status is not None:
                path.unlink(missing_ok=True)


def left_runs(home: Path) -> list[str]:
    """Return the runs that got their status without a controller; their nodes were not visited since."""
    return sorted(path.name.removesuffix(LEFT) for path in (home / FOLDER).glob(f"*{LEFT}"))


def forget_left(home: Path, run: str) -> None:
    """Remove the mark of a run whose nodes were visited."""
    with contextlib.suppress(OSError):
        (home / FOLDER / f"{run}{LEFT}").unlink(missing_ok=True)


def _without_controller(home: Path, store: "Store") -> list[str]:
    """Give the runs of dead processes the status `infra_failure`; their files remain as marks for `left_runs`."""
    ended = []
    for path in sorted((home / FOLDER).glob(f"*{RESERVED}")):
        run = path.name.removesuffix(RESERVED)
        with contextlib.suppress(TipcflowError, OSError):
            if not _is_unlocked(path) or store.runs.get(run).status is not None:
                continue
            store.runs.finish(run, Status.INFRA_FAILURE, f"{NO_CONTROLLER}; {_COLLECT}", time.time())
            path.replace(path.with_name(f"{run}{LEFT}"))
            ended.append(run)
    return ended


def _is_unlocked(path: Path) -> bool:
    """Whether the process that held the lock has ended; False for a file that was never locked."""
    with path.open("rb") as handle:
        if handle.read(len(LOCKED)) != LOCKED:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
