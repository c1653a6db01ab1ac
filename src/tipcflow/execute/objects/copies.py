"""Copies of objects on this machine, in `TIPCFLOW_HOME/objects`: checked by hash, of bounded size.

`<sha256>/<name>`: the hash is the one that the database has of the content, so that no copy is ever outdated.
"""

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from tipcflow.config.settings import settings
from tipcflow.domain import InfraError
from tipcflow.execute.objects.object_store import DamagedObjectError, ObjectStore

FOLDER = "objects"
# A copy that was used within this time stays: its reader may not have opened it yet.
IN_USE_S = 60.0
# A file of an interrupted transfer, or an empty folder, is removed after this time.
_ASIDE_S = 86_400.0
_trimming = threading.Lock()


def copied(
    objects: ObjectStore,
    name: str,
    *,
    home: Path,
    sha256: str,
    count: int,
    content_hash: Callable[[Path], str],
    seconds: float | None = None,
) -> Path:
    """Return a copy of an object on this machine; fetch it unless it is here.

    Args:
        sha256: hash of the content, from the database.
        count: size of the object in bytes, from the database; 0 if unknown.
        content_hash: returns the hash of a file's content, for example of a compressed log.
        seconds: deadline; None: by `count`.

    Raises:
        MissingObjectError: the store has no such object.
        DamagedObjectError: its content has another hash.
        InfraError: the store cannot be reached, or the disk is full.
    """
    path = home / FOLDER / sha256 / name.rpartition("/")[2]
    with contextlib.suppress(OSError):
        os.utime(path)  # in use
        return path
    aside = path.with_name(f".{uuid.uuid4().hex[:8]}-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        objects.get(name, aside, count=count, seconds=seconds)
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
    trim(home, limit=settings().store_cache_mb * 1_000_000)
    return path


def trim(home: Path, *, limit: int, now: float | None = None) -> int:
    """Remove copies, those first that were not used for the longest time, until at most `limit` bytes are left.

    Copies that were used within the last minute stay. Returns the number of removed files.
    """
    now = time.time() if now is None else now
    removed = 0
    with _trimming:
        files = list(_files(home / FOLDER))
        total = sum(count for _, count, _ in files)
        for used_at, count, path in sorted(files):
            is_aside = path.name.startswith(".")
            if used_at > now - (_ASIDE_S if is_aside else IN_USE_S) or (total <= limit and not is_aside):
                continue
            path.unlink(missing_ok=True)
            total -= count
            removed += 1
        for folder in (home / FOLDER).glob("*"):
            with contextlib.suppress(OSError):  # not empty, or removed by another process
                if folder.stat().st_mtime < now - _ASIDE_S:
                    folder.rmdir()
    return removed


def _files(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """Yield (time of the last use, bytes, path) of every file."""
    for path in folder.glob("*/*"):
        with contextlib.suppress(FileNotFoundError):  # removed by another process
            stat = path.stat()
            yield stat.st_mtime, stat.st_size, path
