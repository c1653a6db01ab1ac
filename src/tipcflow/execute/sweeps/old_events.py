"""Removes old event files of runs (`tipcflow.execute.events`) from TIPCFLOW_HOME, and files that are stored.

The DAG `maintenance` removes events on the machine of its task. Triggerers and other workers may have homes of
their own: their processes remove the files themselves.
"""

import contextlib
import logging
import math
import threading
import time
from pathlib import Path

from tipcflow.domain import TipcflowError
from tipcflow.execute.events import EVENTS
from tipcflow.execute.objects.object_store import object_store
from tipcflow.execute.sweeps.stored_runs import FILES_S, old_folders, remove_stored_files

# Live progress, which is not used afterwards; logs and measurements stay.
EVENTS_S = 90 * 24 * 3600.0
# A home is searched at most this often, and for this long: the next search continues.
EVERY_S, LONGEST_S = 3600.0, 60.0
# Its modification time is that of the last search by any process of this machine.
MARK = ".old-events"
_LOG = logging.getLogger(__name__)
_due: dict[Path, float] = {}


def trim_events(home: Path) -> None:
    """Remove old files of this home in a thread, at most once an hour; an error is a warning in the log.

    These are event files, and files of runs that the object store has, if there is one.

    Args:
        home: TIPCFLOW_HOME, with the folder of a run.
    """
    now = time.monotonic()
    if now < _due.get(home, now):
        return
    _due[home] = now + EVERY_S
    threading.Thread(target=trim_now, args=(home,), name="old events", daemon=True).start()


def remove_old_events(home: Path, *, before: float, seconds: float = math.inf) -> int:
    """Remove the event files that were last written before a time, also of active runs; return their number.

    Args:
        before: seconds since the epoch.
        seconds: time limit; files that are left stay until the next call.
    """
    until, removed = time.monotonic() + seconds, 0
    for path in (home / "runs").glob(f"*/{EVENTS}"):
        if time.monotonic() > until:
            break
        with contextlib.suppress(FileNotFoundError):  # removed by another process in the meantime
            if path.stat().st_mtime < before:
                path.unlink()
                removed += 1
    return removed


def trim_now(home: Path) -> None:
    """Remove old files of this home, unless a process of this machine did so within the hour."""
    now, mark = time.time(), home / "runs" / MARK
    try:
        with contextlib.suppress(FileNotFoundError):
            if abs(now - mark.stat().st_mtime) < EVERY_S:
                return
        mark.touch()
        remove_old_events(home, before=now - EVENTS_S, seconds=LONGEST_S)
        _trim_stored(home, before=now - FILES_S)
    except (TipcflowError, OSError) as error:
        _LOG.warning("cannot remove old files of runs in %s: %r", home, error)


def _trim_stored(home: Path, *, before: float) -> None:
    objects = object_store()
    if objects is None or not (folders := old_folders(home, before=before)):
        return
    from tipcflow.store import Store

    with Store.open_in_task(wait_s=0.0) as store:
        until = time.monotonic() + LONGEST_S
        removed = remove_stored_files(store, objects, home, folders, before=before, until=until)
    if removed:
        _LOG.info("removed the files of %d runs from %s: the object store %s has them", removed, home, objects.url)
