"""Records which logs exist when a job starts, because a script may append to the log of an earlier attempt."""

from __future__ import annotations

import json
import os
import time

from .files import Json, open_regular, save
from .outputs import matches

NAME = "before.json"
HASHED = 64 * 1024  # bytes at the start and at the end of a log that are hashed
MOST = 512  # files; a step has few logs, but may have many weights
# An overwritten log must be seen while it is shorter than before: printing the same again takes longer than this.
POLL_S = 0.05
MOST_POLLED = 64  # logs; of more, only overwriting that takes longer than SLOW_S is detected
SLOW_S = 1.0
LOGS = (".log", ".txt", ".out", ".err", ".jsonl", ".csv", "")


class Before:
    """The recorded logs, monitored for logs that shrink or are replaced, which means overwritten."""

    def __init__(self, folder: str, spec: Json) -> None:
        self._path, self._root = os.path.join(folder, NAME), spec["root"]
        self._patterns = [*spec.get("progress", ()), *spec.get("artefacts", ())]
        self._files: dict[str, Json] = {}
        self._next = 0.0

    def begin(self) -> None:
        """Record the existing logs; called before the first command."""
        logs = sorted(
            {path for pattern in self._patterns for path in matches(self._root, pattern) if is_log(path)}
        )
        for path in logs[:MOST]:
            try:
                self._files[path] = recorded(os.path.join(self._root, path))
            except OSError:
                continue  # deleted, or not a regular file
        self._save()

    def poll(self) -> None:
        """Detect overwritten logs; called in each turn of the runner's loop.

        A detected one is saved at once: a node that is lost writes no final record.
        """
        if self._files and time.monotonic() >= self._next:
            self._next = time.monotonic() + self._interval()
            overwritten = self._overwritten()
            for path, known in self._files.items():
                update_record(os.path.join(self._root, path), known)
            if self._overwritten() != overwritten:
                self._save()

    def end(self) -> None:
        """Record the final state of the logs; called after the last command."""
        if self._files:
            self._next = 0.0
            self.poll()
            self._save()

    def _interval(self) -> float:
        return POLL_S if len(self._files) <= MOST_POLLED else SLOW_S

    def _overwritten(self) -> int:
        return sum(bool(known["rewritten"]) for known in self._files.values())

    def _save(self) -> None:
        record = {"schema_version": 1, "look_s": self._interval(), "files": self._files}
        try:
            save(self._path, json.dumps(record))
        except OSError:
            pass  # the disk is full: the controller has another way to separate attempts


def is_log(path: str) -> bool:
    """Return whether a file of that name may be a log; weights and images are not."""
    name = os.path.basename(path)
    return name.startswith("workerlog.") or os.path.splitext(name)[1] in LOGS


def recorded(path: str) -> Json:
    """Return the current state of a log.

    Raises:
        OSError: the log cannot be read.
    """
    import hashlib  # this import takes longer than the start of the runner

    with open_regular(path) as handle:
        stat = os.fstat(handle.fileno())
        size = stat.st_size
        head = handle.read(min(HASHED, size))
        handle.seek(max(0, size - HASHED))
        tail = handle.read(min(HASHED, size))
    return {
        "size": size,
        "inode": stat.st_ino,
        "mtime_ns": stat.st_mtime_ns,
        "hashed": HASHED,
        "head": hashlib.sha256(head).hexdigest(),
        "tail": hashlib.sha256(tail).hexdigest(),
        "rewritten": False,
        "touched": False,
    }


def update_record(path: str, known: Json) -> None:
    """Update the record of a log: overwritten or not."""
    try:
        stat = os.stat(path)
    except OSError:
        known["rewritten"] = True
        return
    if stat.st_ino != known["inode"] or stat.st_size < known["size"]:
        known["rewritten"] = True
    if stat.st_mtime_ns != known["mtime_ns"]:
        known["touched"] = True
