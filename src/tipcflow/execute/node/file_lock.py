"""A lock that is a file, for processes that share a folder; with a deadline."""

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path

from tipcflow.domain import InfraError

_LOOK_S = 0.2


@contextlib.contextmanager
def locked(path: Path, *, seconds: float) -> Iterator[None]:
    """Hold the lock; it ends with its process.

    Raises:
        InfraError: somebody else holds it for longer than so many seconds.
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
                        hint="another process of ours holds it, maybe on another machine that shares the folder",
                    ) from None
                time.sleep(_LOOK_S)
        yield
