"""Statuses of runs that the database could not store: files until a later command or task can store them.

Each run reserves its file at its start, so that a full disk can store the status as well.
"""

import contextlib
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcflow.domain import Run, Status, TipcflowError

if TYPE_CHECKING:
    from tipcflow.store import Store

FOLDER, RESERVED = "unfinished", ".reserved"
ROOM = 4096
OLD_S = 30 * 86400.0


def reserve(home: Path, run: str) -> None:
    """Reserve the space for a run's status; an already full disk is reported elsewhere."""
    with contextlib.suppress(OSError):
        folder = home / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{run}{RESERVED}").write_bytes(b" " * ROOM)


def release(home: Path, run: str) -> None:
    """Remove the file of a run whose status is in the database."""
    with contextlib.suppress(OSError):
        (home / FOLDER / f"{run}{RESERVED}").unlink(missing_ok=True)


def keep(home: Path, run: str, status: Status, reason: str, *, lost: tuple[str, Run | None] | None = None) -> bool:
    """Store a run's status in its file; return whether that succeeded (the disk may be full, too).

    Args:
        lost: (URL without password, the run as it began) of a database that lost the run: a new database at that
            URL gets the run as well.
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
    """Give the runs their stored statuses, unless they have one by now; return the runs that were updated."""
    applied = []
    _forget_reserved(home, store)
    for path in sorted((home / FOLDER).glob("*.json")):
        try:
            kept = json.loads(path.read_text())
            if kept.get("database") == store.url and store.runs.get_or_none(path.stem) is None:
                store.runs.create(Run.model_validate(kept["run"]))
            if store.runs.get(path.stem).status is None:
                store.runs.finish(path.stem, Status(kept["status"]), str(kept["reason"]), float(kept["ended_at"]))
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
