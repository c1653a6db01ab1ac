"""A lock file for processes that share a folder, with a timeout."""

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path

from tipcflow.domain import InfraError

_LOOK_S = 0.2


@contextlib.contextmanager
def locked(path: Path, *, seconds: float) -> Iterator[None]:
    """Hold the lock; the operating system releases it when the process ends.

    Raises:
        InfraError: another process holds the lock for longer than `seconds`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + seconds
    with path.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise InfraError(
                        f"{path} was locked for {seconds:.0f} s",
                        hint="another tipcflow process holds the lock, possibly on another machine",
                    ) from None
                time.sleep(_LOOK_S)
        yield
