"""Copies of objects on this machine, in `TIPCFLOW_HOME/objects`: checked by hash, of bounded size.

`<sha256>/<name>`: the hash is the one that the database has of the content, so that no copy is ever outdated.
"""

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from tipcflow.config.settings import settings
from tipcflow.domain import InfraError
from tipcflow.execute.objects.object_store import DamagedObjectError, ObjectStore, transfer_s
from tipcflow.execute.objects.transfers import transfers

FOLDER = "objects"
# A copy that was used within this time stays: its reader may not have opened it yet.
IN_USE_S = 60.0
# More copies make each search for the oldest slow.
MOST_FILES = 20_000
# A process searches for old copies this often, or after it has written this part of the limit.
EVERY_S, WRITTEN = 60.0, 0.1
# A file of an interrupted transfer, or an empty folder, is removed after this time.
_ASIDE_S = 86_400.0


def copied(
    objects: ObjectStore,
    name: str,
    *,
    home: Path,
    sha256: str,
    count: int,
    content_hash: Callable[[Path], str],
    seconds: float | None = None,
    fresh: bool = False,
) -> Path:
    """Return a copy of an object on this machine; fetch it unless it is here.

    A copy that takes longer than the deadline continues: a later call waits for the same one, or finds the file.

    Args:
        sha256: hash of the content, from the database.
        count: size of the object in bytes, from the database; 0 if unknown.
        content_hash: returns the hash of a file's content, for example of a compressed log.
        seconds: deadline; None: by `count`.
        fresh: whether to fetch the object even if a copy is here: a copy does not prove that the object still
            exists, and may have been changed.

    Raises:
        MissingObjectError: the store has no such object.
        DamagedObjectError: its content has another hash.
        InfraError: the store cannot be reached, the disk is full, or the copy continues after the deadline.
    """
    path = home / FOLDER / sha256 / name.rpartition("/")[2]
    if not fresh:
        with contextlib.suppress(OSError):
            os.utime(path)  # in use
            return path

    def fetch(aside: Path) -> None:
        _fetch(objects, name, path, aside=aside, sha256=sha256, content_hash=content_hash)
        _trimmer(os.getpid()).trim_soon(home, path.stat().st_size)

    transfers().wait(
        (path, name),
        path.with_name(f".{uuid.uuid4().hex[:8]}-{path.name}"),
        fetch,
        count=count,
        seconds=transfer_s(count) if seconds is None else seconds,
        what=f"cannot read {name} in the object store {objects.url}",
    )
    return path


def _fetch(
    objects: ObjectStore,
    name: str,
    path: Path,
    *,
    aside: Path,
    sha256: str,
    content_hash: Callable[[Path], str],
) -> None:
    """Copy an object to `aside`, which becomes `path` if its content has the hash."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        objects.get_in_thread(name, aside)
        if content_hash(aside) != sha256:
            raise DamagedObjectError(
                f"{name} in the object store {objects.url} is damaged: its SHA-256 differs from the stored one"
            )
        aside.replace(path)
    except OSError as error:
        raise InfraError(
            f"cannot copy {name} of the object store to {path.parent}: {error.strerror or error}",
            hint="TIPCFLOW_HOME must be writable for copies of at most TIPCFLOW_STORE_CACHE_MB",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


class _Trimmer:
    """Removes old copies in a thread: a search reads the times of all copies, for which no reader waits."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._searching: threading.Thread | None = None
        self._due: dict[Path, float] = {}
        self._written: dict[Path, int] = {}

    def trim_soon(self, home: Path, count: int) -> None:
        """Start a search if one is due after `count` more bytes, and none is under way."""
        limit, now = settings().store_cache_mb * 1_000_000, time.monotonic()
        with self._guard:
            written = self._written[home] = self._written.get(home, 0) + count
            is_due = now >= self._due.get(home, now) or written > limit * WRITTEN
            if not is_due or (self._searching is not None and self._searching.is_alive()):
                return
            self._due[home], self._written[home] = now + EVERY_S, 0
            # Not a daemon: a process that ends at once would never finish a search.
            self._searching = threading.Thread(target=_trim_quietly, args=(home, limit), name="old copies")
            self._searching.start()


@lru_cache(maxsize=1)
def _trimmer(pid: int) -> _Trimmer:
    """Return the trimmer of this process: a forked one has no thread of its parent."""
    return _Trimmer()


def _trim_quietly(home: Path, limit: int) -> None:
    with contextlib.suppress(OSError):
        trim(home, limit=limit)


def trim(home: Path, *, limit: int, most: int = MOST_FILES, now: float | None = None) -> int:
    """Remove copies, those first that were not used for the longest time, until few enough are left.

    Copies that were used within the last minute stay. Returns the number of removed files.

    Args:
        limit: maximum number of bytes.
        most: maximum number of files.
        now: seconds since the epoch.
    """
    now = time.time() if now is None else now
    removed = 0
    files = sorted(_files(home / FOLDER))
    total, count = sum(size for _, size, _ in files), len(files)
    for used_at, size, path in files:
        is_aside, is_over = path.rpartition("/")[2].startswith("."), total > limit or count > most
        if used_at > now - (_ASIDE_S if is_aside else IN_USE_S) or not (is_over or is_aside):
            continue
        Path(path).unlink(missing_ok=True)
        total, count, removed = total - size, count - 1, removed + 1
    for folder in _entries(home / FOLDER):
        with contextlib.suppress(OSError):  # not empty, or removed by another process
            if folder.stat().st_mtime < now - _ASIDE_S:
                Path(folder).rmdir()
    return removed


def _files(folder: Path) -> Iterator[tuple[float, int, str]]:
    """Yield (time of the last use, bytes, path) of every file; paths are text, because there are many."""
    for parent in _entries(folder):
        for entry in _entries(parent):
            with contextlib.suppress(FileNotFoundError):  # removed by another process
                stat = entry.stat()
                yield stat.st_mtime, stat.st_size, entry.path


def _entries(folder: Path | os.DirEntry[str]) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, [] of a file and of a folder that does not exist."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
