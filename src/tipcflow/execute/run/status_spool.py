"""Statuses of runs that the database could not take: kept as files until a later command or task can store them.

Each run reserves its file when it begins, so that a full disk can take the status as well.
"""

import contextlib
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain import Status, TipcflowError

if TYPE_CHECKING:
    from tipcflow.store import Store

FOLDER, RESERVED = "unfinished", ".reserved"
ROOM = 4096
OLD_S = 30 * 86400.0


def reserve(home: Path, run: str) -> None:
    """Take the room that a run's status may need later; a disk that is full already is noticed elsewhere."""
    with contextlib.suppress(OSError):
        folder = home / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{run}{RESERVED}").write_bytes(b" " * ROOM)


def release(home: Path, run: str) -> None:
    """The run's status is in the database."""
    with contextlib.suppress(OSError):
        (home / FOLDER / f"{run}{RESERVED}").unlink(missing_ok=True)


def keep(home: Path, run: str, status: Status, reason: str) -> bool:
    """Keep a run's status; whether that was possible (the disk may be full, too)."""
    try:
        folder = home / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        content = {"status": status.value, "reason": reason[: ROOM // 8], "ended_at": time.time()}
        reserved = folder / f"{run}{RESERVED}"
        # Written in place: what is reserved needs no further room.
        with open(reserved, "r+b" if reserved.exists() else "wb") as handle:  # noqa: PTH123
            handle.write(json.dumps(content).encode().ljust(ROOM))
            handle.flush()
            os.fsync(handle.fileno())
        reserved.replace(folder / f"{run}.json")
    except OSError:
        return False
    return True


def apply(home: Path, store: "Store") -> list[str]:
    """Give the runs the statuses that were kept, unless they have one by now; the runs that got theirs."""
    applied = []
    _forget_reserved(home, store)
    for path in sorted((home / FOLDER).glob("*.json")):
        try:
            kept = json.loads(path.read_text())
            if store.get_run(path.stem).status is None:
                store.finish_run(path.stem, Status(kept["status"]), str(kept["reason"]), float(kept["ended_at"]))
                applied.append(path.stem)
        except TipcflowError:
            continue  # another database: the file waits for its own
        except (OSError, ValueError, KeyError, TypeError):
            pass  # half a file of a full disk
        path.unlink(missing_ok=True)
    return applied


def _forget_reserved(home: Path, store: "Store") -> None:
    """Remove what runs reserved that have a status, or that were killed long ago."""
    for path in (home / FOLDER).glob(f"*{RESERVED}"):
        with contextlib.suppress(TipcflowError, OSError):
            old = time.time() - path.stat().st_mtime > OLD_S
            if old or store.get_run(path.name.removesuffix(RESERVED)).status is not None:
                path.unlink(missing_ok=True)
