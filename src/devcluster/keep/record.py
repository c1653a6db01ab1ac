"""Record of a kept service: one JSON file in `<home>/local`, written before any resource is created."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from devcluster.local_nodes.processes import start_time
from tipcflow.domain import InfraError

Name = Literal["nodes", "airflow"]
Condition = Literal["starting", "running", "failed", "stale"]


@dataclass
class Record:
    """One kept service.

    Attributes:
        pid: of the keeper process, which owns all other processes.
        started: start time of that process in clock ticks since boot; a pid alone may be reused.
        since: Unix time of the start.
        ready: whether the service is in use.
        failed: why the keeper ended without a request; '' otherwise.
        facts: what the service reports about itself: addresses, files.
    """

    name: Name
    pid: int
    started: int
    since: float
    ready: bool = False
    failed: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def alive(self) -> bool:
        """Whether the keeper process runs."""
        return self.started > 0 and start_time(self.pid) == self.started

    @property
    def condition(self) -> Condition:
        """The condition now: `stale` if the keeper was killed, or the machine was restarted."""
        if self.alive and not self.failed:
            return "running" if self.ready else "starting"
        return "failed" if self.failed else "stale"

    def save(self, home: Path) -> None:
        """Write the record atomically."""
        path = file_of(home, self.name)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}.new")
        draft.write_text(json.dumps(asdict(self), indent=1))
        draft.replace(path)


def file_of(home: Path, name: Name) -> Path:
    """Return the path of a service's record."""
    return home / "local" / f"{name}.json"


def log_of(home: Path, name: Name) -> Path:
    """Return the path of the keeper's log."""
    return home / "local" / f"{name}.log"


def read(home: Path, name: Name) -> Record | None:
    """Return a service's record; None if it was never started, or was stopped."""
    try:
        return Record(**json.loads(file_of(home, name).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def forget(home: Path, name: Name) -> None:
    """Remove a service's record and keep its log. Idempotent."""
    file_of(home, name).unlink(missing_ok=True)


def remove(home: Path, name: Name) -> None:
    """Remove a service's record and log, and the folder if it is empty. Idempotent."""
    for path in (file_of(home, name), log_of(home, name)):
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        (home / "local").rmdir()


@contextlib.contextmanager
def exclusive(home: Path, name: Name) -> Iterator[None]:
    """Let one command at a time start or stop a service.

    Raises:
        InfraError: another command is starting or stopping it.
    """
    path = _lock_file(home, name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FileLock(path, timeout=0, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise InfraError(
            f"another command is starting or stopping the local {name}", hint="wait for it; see `tipcflow status`"
        ) from error
    try:
        yield
    finally:
        if read(home, name) is None:
            path.unlink(missing_ok=True)
        lock.release()
        with contextlib.suppress(OSError):  # not empty: a service runs, or a failed start left its log
            path.parent.rmdir()


def _lock_file(home: Path, name: Name) -> Path:
    return home / "local" / f"{name}.lock"
