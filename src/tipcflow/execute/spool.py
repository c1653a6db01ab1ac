"""Statuses of runs that the database could not take: kept as files until a later command can store them."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain import Status, TipcflowError

if TYPE_CHECKING:
    from tipcflow.store import Store

FOLDER = "unfinished"


def keep(home: Path, run: str, status: Status, reason: str) -> bool:
    """Keep a run's status; whether that was possible (the disk may be full, too)."""
    try:
        folder = home / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        content = {"status": status.value, "reason": reason, "ended_at": time.time()}
        (folder / f"{run}.json").write_text(json.dumps(content))
    except OSError:
        return False
    return True


def apply(home: Path, store: "Store") -> list[str]:
    """Give the runs the statuses that were kept, unless they have one by now; the runs that got theirs."""
    applied = []
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
