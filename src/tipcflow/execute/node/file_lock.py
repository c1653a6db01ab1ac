"""A lock file for processes that share a folder, with a timeout."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from tipcflow.domain import InfraError
from tipcflow.domain.numbers.units import rough

_POLL_S = 0.2


@contextlib.contextmanager
def locked(path: Path, *, seconds: float) -> Iterator[None]:
    """Hold the lock; the operating system releases it when the process ends.

    Raises:
        InfraError: another process holds the lock for longer than `seconds`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # A file system without flock (ENOSYS) is an error: a lock file of another kind would outlive a killed process.
    lock = FileLock(path, timeout=seconds, poll_interval=_POLL_S, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise InfraError(
            f"{path} was locked for {rough(seconds)}",
            hint="another tipcflow process holds the lock, possibly on another machine",
        ) from None
    try:
        yield
    finally:
        lock.release()
