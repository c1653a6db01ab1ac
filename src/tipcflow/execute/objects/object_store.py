"""Objects of the store that TIPCFLOW_STORE names: a folder that all machines mount, or S3, both through fsspec.

Names are relative to the URL and like paths: `runs/<run>/<step>~<attempt>/<node>/logs/main.log`. An object is
complete as soon as it has its name. Credentials are those of the environment, which fsspec's package reads.
"""

import errno
import math
import os
import posixpath
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tenacity import Retrying, retry_if_exception, stop_after_attempt, stop_after_delay, wait_exponential

from tipcflow.config.settings import settings
from tipcflow.domain import ConfigError, InfraError
from tipcflow.execute.objects.deadline import within

T = TypeVar("T")
KEY = "TIPCFLOW_STORE"
# Deadline of a request without content of a file.
REQUEST_S = 30.0
# Deadline of transfers: this much, and as much as the bytes take at a rate that any network of a cluster has.
TRANSFER_S = 60.0
BYTES_PER_S = 20_000_000
# Folder of a `file:` store with files that are being written.
ASIDE = ".aside"
_TRIES = 3
# Another attempt has the same result.
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, ImportError)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_S3 = {"connect_timeout": 5, "read_timeout": 20, "retries": {"max_attempts": 2}}


class MissingObjectError(InfraError):
    """The store has no object with that name."""


class DamagedObjectError(InfraError):
    """An object has another content than the one that was stored."""


@dataclass(frozen=True)
class StoredObject:
    """An object: its size in bytes and, in seconds since the epoch, the time at which it was written."""

    name: str
    bytes: int
    changed_at: float


class ObjectStore:
    """Objects below a URL.

    All methods raise InfraError: the store cannot be reached, refuses, or does not respond in time. The message
    names the store and the cause.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._root = url.removeprefix("file://") if url.startswith("file://") else url.partition("://")[2]

    def put(self, name: str, file: Path) -> int:
        """Write a file as an object, replacing an earlier one; return its size in bytes."""
        count = file.stat().st_size
        self._do(f"write {name}", transfer_s(count), lambda system: self._put(system, name, file))
        return count

    def get(self, name: str, file: Path, *, count: int = 0, seconds: float | None = None) -> None:
        """Copy an object into a file.

        Args:
            count: expected size in bytes, for the deadline.
            seconds: deadline; None: by `count`.

        Raises:
            MissingObjectError: no such object.
        """
        seconds = transfer_s(count) if seconds is None else seconds
        self._do(f"read {name}", seconds, lambda system: system.get_file(self._path(name), str(file)))

    def get_in_thread(self, name: str, file: Path) -> None:
        """Copy an object into a file without a deadline, in a thread for which no caller must wait.

        Raises:
            MissingObjectError: no such object.
        """
        self._do(f"read {name}", None, lambda system: system.get_file(self._path(name), str(file)))

    def read(self, name: str, *, last: int | None = None) -> bytes:
        """Return the content of a small object, or its last bytes.

        Raises:
            MissingObjectError: no such object.
        """
        start = None if last is None else -last
        return self._do(f"read {name}", TRANSFER_S, lambda system: _read(system, self._path(name), start))

    def below(self, prefix: str) -> list[StoredObject]:
        """Return the objects whose names begin with the folder `prefix`; '' for all."""
        return self._do(
            f"list {prefix or 'objects'}", TRANSFER_S, lambda system: list(self._below(system, prefix))
        )

    def find(self, name: str) -> StoredObject | None:
        """Return the object with that name, None if there is none."""
        try:
            info = self._do(f"look up {name}", REQUEST_S, lambda system: system.info(self._path(name)))
        except MissingObjectError:
            return None
        return StoredObject(name, int(info.get("size") or 0), _changed_at(info))

    def keep(self, name: str, file: Path, *, fresh_s: float) -> None:
        """Write a file that never changes, unless an object of its size was written within `fresh_s`.

        The time of an object is that of its last use, more or less: unused objects are removed.
        """
        known = self.find(name)
        is_fresh = known is not None and known.changed_at > time.time() - fresh_s
        if known is None or not is_fresh or known.bytes != file.stat().st_size:
            self.put(name, file)

    def remove(self, names: Iterable[str]) -> int:
        """Remove objects; return how many existed."""
        removed = 0
        for name in names:
            try:
                self._remove(name)
                removed += 1
            except MissingObjectError:
                continue
        return removed

    def _remove(self, name: str) -> None:
        def call(system: Any) -> None:
            # S3 confirms the removal of an object that does not exist.
            if not _is_local(system):
                system.info(self._path(name))
            system.rm_file(self._path(name))

        self._do(f"remove {name}", REQUEST_S, call)

    def probe(self, folder: Path) -> None:
        """Write, read and remove an object.

        Args:
            folder: folder on this machine for a small file.
        """
        name, content = f".probe-{uuid.uuid4().hex}", os.urandom(1024)
        file = folder / "out" / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            self.put(name, file)
        except OSError as error:
            raise InfraError(f"cannot write to {file.parent}: {error.strerror or error}") from error
        finally:
            file.unlink(missing_ok=True)
        if self.read(name) != content:
            raise self._error(f"read {name}", "the content differs from what was written")
        self.remove([name])

    def _put(self, system: Any, name: str, file: Path) -> None:
        path = self._path(name)
        if not _is_local(system):
            system.put_file(str(file), path)
            return
        # An object store shows complete objects only; a folder does so by renaming.
        aside = f"{self._root}/{ASIDE}/{uuid.uuid4().hex}"
        for each in (aside, path):
            system.makedirs(posixpath.dirname(each), exist_ok=True)
        try:
            system.put_file(str(file), aside)
            Path(aside).replace(path)
        finally:
            Path(aside).unlink(missing_ok=True)

    def _below(self, system: Any, prefix: str) -> Iterator[StoredObject]:
        root = self._path(prefix) if prefix else self._root
        try:
            # fsspec's `find` of a folder ignores folders that cannot be read.
            files = _walk(system, root) if _is_local(system) else system.find(root, detail=True)
        except FileNotFoundError:
            return
        start = len(self._root.strip("/")) + 1
        for path, info in sorted(files.items()):
            yield StoredObject(path.strip("/")[start:], int(info.get("size") or 0), _changed_at(info))

    def _path(self, name: str) -> str:
        parts = name.split("/")
        if not name or any(part in ("", ".", "..") for part in parts):
            raise InfraError(f"{name!r} is not the name of an object")
        return f"{self._root}/{name}"

    def _do(self, what: str, seconds: float | None, call: Callable[[Any], T]) -> T:
        """Call with the file system, a few times if an error may pass, within a deadline, if there is one."""

        def attempt() -> T:
            return call(self._system())

        retrying = Retrying(
            stop=stop_after_attempt(_TRIES) | stop_after_delay(math.inf if seconds is None else seconds),
            wait=wait_exponential(multiplier=0.2, max=2.0),
            retry=retry_if_exception(_may_pass),
            reraise=True,
        )
        try:
            if seconds is None:
                return retrying(attempt)
            return within(seconds, f"cannot {what} in the object store {self.url}", lambda: retrying(attempt))
        except (InfraError, ConfigError):
            raise
        except FileNotFoundError as error:
            raise MissingObjectError(f"cannot {what}: it is not in the object store {self.url}") from error
        except ImportError as error:
            raise ConfigError(
                f"the package for this URL is not installed: {error.name or error}",
                key=KEY,
                found=self.url,
                expected="file:///folder, or `pip install 'tipcflow[s3]'` for s3://bucket/folder",
            ) from error
        except PermissionError as error:
            raise self._error(what, f"no permission: {error.strerror or error}") from error
        except Exception as error:
            raise self._error(what, _reason(error), passing=True) from error

    def _error(self, what: str, why: str, *, passing: bool = False) -> InfraError:
        return InfraError(
            f"cannot {what} in the object store {self.url}: {why}",
            hint="`tipcflow doctor` tests the object store from its machine",
            passing=passing,
        )

    def _system(self) -> Any:
        """Return fsspec's file system.

        Raises:
            InfraError: the folder of a `file:` store does not exist: it may be a mount that is missing here.
        """
        system = _file_system(urlsplit(self.url).scheme, os.getpid())
        if _is_local(system) and not Path(self._root).is_dir():
            raise InfraError(
                f"the folder of the object store {self.url} does not exist on this machine",
                hint="create it once on the shared file system, and mount that on every machine",
            )
        return system


def object_store() -> ObjectStore | None:
    """Return the object store of this installation; None if its machines share TIPCFLOW_HOME."""
    url = settings().store
    return None if url is None else ObjectStore(url)


def transfer_s(count: float) -> float:
    """Return the deadline of the transfer of `count` bytes, seconds."""
    return TRANSFER_S + count / BYTES_PER_S


@lru_cache(maxsize=4)
def _file_system(scheme: str, pid: int) -> Any:
    """Return fsspec's file system of this process: a forked one cannot use its parent's connections."""
    import fsspec

    options: dict[str, Any] = {"config_kwargs": _S3} if scheme == "s3" else {}
    # Other machines write: listings are never reused.
    return fsspec.filesystem(scheme, use_listings_cache=False, skip_instance_cache=True, **options)


def _is_local(system: Any) -> bool:
    return bool(getattr(system, "local_file", False))


def _walk(system: Any, root: str) -> dict[str, Any]:
    files: dict[str, Any] = {}
    for folder, _, entries in system.walk(root, detail=True, on_error="raise"):
        files |= {posixpath.join(folder, name): info for name, info in entries.items()}
    return files


def _read(system: Any, path: str, start: int | None) -> bytes:
    return bytes(system.cat_file(path, start=start))


def _changed_at(info: Any) -> float:
    """Return the time of an object in the words of its file system: seconds, or a datetime."""
    value = next((info[key] for key in ("mtime", "LastModified", "created") if info.get(key) is not None), 0.0)
    return value.timestamp() if isinstance(value, datetime) else float(value)


def _may_pass(error: BaseException) -> bool:
    is_final = isinstance(error, (*_FINAL, InfraError)) or getattr(error, "errno", None) in _FULL
    return isinstance(error, Exception) and not is_final


def _reason(error: Exception) -> str:
    """Return the error in one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
