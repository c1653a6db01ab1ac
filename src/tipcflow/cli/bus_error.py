"""SIGBUS: the kernel sends it when a file that SQLite has mapped is truncated or cannot be extended.

Python cannot turn it into an exception: the signal repeats at the same instruction. SQLite runs without the
interpreter's lock, so another thread can still print one line and exit.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator

LINE = "the database files were truncated or made read-only while in use (SIGBUS)"
_before_the_end: list[Callable[[str], object]] = []


def watch_for_bus_errors() -> None:
    """Exit at the first SIGBUS with one line and the exit code of `infra_failure`."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGBUS, lambda *_: None)
    threading.Thread(target=_wait, args=(reader,), name="bus errors", daemon=True).start()


@contextlib.contextmanager
def report_bus_errors(do: Callable[[str], object]) -> Iterator[None]:
    """Call a function with the reason before SIGBUS ends the process."""
    _before_the_end.append(do)
    try:
        yield
    finally:
        _before_the_end.remove(do)


def _wait(reader: int) -> None:
    while signal.SIGBUS not in os.read(reader, 4096):
        pass
    for do in _before_the_end:
        with contextlib.suppress(Exception):
            do(LINE)
    from tipcflow.domain import Status, exit_code  # slow; the command that opened the database has imported it

    with contextlib.suppress(OSError, ValueError):
        has_display = os.isatty(2) and os.environ.get("TERM") != "dumb"
        shown = "\x1b[?25h" if has_display else ""  # a live display hides the cursor
        os.write(2, f"{shown}\n{Status.INFRA_FAILURE.value}: {LINE}\n".encode())
    os._exit(exit_code(Status.INFRA_FAILURE))
