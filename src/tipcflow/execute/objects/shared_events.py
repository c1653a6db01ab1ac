"""The end of a run's events in the object store, an object per machine, for pages of other machines.

`events/<run>/<machine>.jsonl` is overwritten every few seconds. Events are not evidence: without the object store
a run continues, and other machines see fewer events.
"""

import hashlib
import socket
import threading
import time
import uuid
from pathlib import Path
from weakref import WeakValueDictionary

from tipcflow.domain import InfraError
from tipcflow.execute.objects.copies import FOLDER
from tipcflow.execute.objects.deadline import within
from tipcflow.execute.objects.object_store import ObjectStore, object_store

OBJECTS = "events"
# Bytes at the end of a machine's events that other machines see.
MOST = 256 * 1024
EVERY_S = 15.0
# Nothing is written or read for this time after an error.
PAUSE_S = 60.0
# A task does not wait longer for its last events; a page not for those of other machines.
FLUSH_S, READ_S = 5.0, 3.0
_MOST_MACHINES = 64


class SharedEvents:
    """Writes the end of a machine's event file to the object store, in a thread.

    Args:
        path: the event file; all processes of this machine append to it.
    """

    def __init__(self, objects: ObjectStore, run: str, home: Path, path: Path) -> None:
        self._objects, self._home, self._path = objects, home, path
        self._name = f"{OBJECTS}/{run}/{machine(home)}.jsonl"
        self._guard = threading.Lock()
        self._due = time.monotonic() + EVERY_S / 5
        self._paused_until = 0.0
        self._written = -1

    def follow(self, *, urgent: bool = False) -> None:
        """Write soon, in a thread, if enough time has passed since the last time.

        Args:
            urgent: whether to write now.
        """
        now = time.monotonic()
        if now < self._paused_until or (now < self._due and not urgent) or self._guard.locked():
            return
        self._due = now + EVERY_S
        threading.Thread(target=self._write, name="events", daemon=True).start()

    def flush(self) -> None:
        """Write what is not written yet; returns after a few seconds in any case."""
        if time.monotonic() < self._paused_until or self._size() == self._written:
            return
        try:
            within(FLUSH_S, "cannot write the last events", self._write)
        except InfraError:
            self._paused_until = time.monotonic() + PAUSE_S

    def _write(self) -> None:
        with self._guard:
            aside = self._home / FOLDER / "out" / f".{uuid.uuid4().hex}"
            try:
                count = self._size()
                aside.parent.mkdir(parents=True, exist_ok=True)
                aside.write_bytes(end_of(self._path, count))
                self._objects.put(self._name, aside)
                self._written = count
            except (InfraError, OSError):
                self._paused_until = time.monotonic() + PAUSE_S
            finally:
                aside.unlink(missing_ok=True)

    def _size(self) -> int:
        return self._path.stat().st_size if self._path.is_file() else -1


_shared: "WeakValueDictionary[Path, SharedEvents]" = WeakValueDictionary()
_known: dict[str, tuple[float, int, bytes]] = {}
_away_until = 0.0


def shared_events(run: str, home: Path, path: Path) -> SharedEvents | None:
    """Return the writer of this process for a run's event file; None without an object store."""
    objects = object_store()
    if objects is None:
        return None
    return _shared.setdefault(path, SharedEvents(objects, run, home, path))


def events_of_others(run: str, home: Path) -> list[bytes]:
    """Return the end of the event files of other machines; [] without an object store that responds in time."""
    global _away_until  # noqa: PLW0603
    objects = object_store()
    if objects is None or time.monotonic() < _away_until:
        return []
    try:
        return within(READ_S, "cannot read events", lambda: _read_others(objects, run, machine(home)))
    except InfraError:
        _away_until = time.monotonic() + PAUSE_S
        return []


def end_of(path: Path, count: int, most: int = MOST) -> bytes:
    """Return whole lines at the end of the first `count` bytes of a file, at most `most` bytes."""
    with path.open("rb") as file:
        start = max(0, count - most)
        file.seek(start)
        data = file.read(count - start)
    return data[data.find(b"\n") + 1 :] if start else data


def machine(home: Path) -> str:
    """Return a name of this machine and folder."""
    return f"{socket.gethostname()}-{hashlib.sha256(str(home).encode()).hexdigest()[:8]}"


def _read_others(objects: ObjectStore, run: str, own: str) -> list[bytes]:
    contents = []
    for each in objects.below(f"{OBJECTS}/{run}")[:_MOST_MACHINES]:
        if each.name.endswith(f"/{own}.jsonl"):
            continue
        known = _known.get(each.name)
        if known is None or known[:2] != (each.changed_at, each.bytes):
            known = (each.changed_at, each.bytes, objects.read(each.name))
            while len(_known) >= _MOST_MACHINES:
                _known.pop(next(iter(_known)), None)
            _known[each.name] = known
        contents.append(known[2])
    return contents
