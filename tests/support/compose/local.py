"""Servers of docker/ as processes of this machine."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def process(*command: object, **more: object) -> "Iterator[subprocess.Popen[bytes]]":
    """A process group that ends with SIGKILL."""
    started = subprocess.Popen([str(part) for part in command], start_new_session=True, **more)  # type: ignore[call-overload]
    try:
        yield started
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait(30)


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until the condition is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
