"""Entry point of the command `tipcflow`: Ctrl-C before and after the command prints no traceback.

Imports take up to a second, and the interpreter takes a while to end; a signal at the end keeps the exit code.

Imports nothing but the standard library before the handler is set.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

# exit_code(Status.CANCELLED); importing it here would import what the handler is for.
CANCELLED = 3


def main() -> None:
    """Import the CLI and run it."""
    with exit_on_interrupt():
        from tipcflow.cli.main import main as run
    try:
        run(ends_process=True)
    except SystemExit as ended:
        _keep_exit_code(ended)
        raise


@contextlib.contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """During imports, Ctrl-C ends the process at once: nothing has been started or written yet.

    An exception would be reported by whatever module is being imported. A shell starts background jobs with SIGINT
    ignored; they keep that.
    """
    before = signal.getsignal(signal.SIGINT)
    is_default = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if is_default:
        signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        if is_default:
            signal.signal(signal.SIGINT, before)


def _keep_exit_code(ended: SystemExit) -> None:
    """SIGINT, SIGTERM and SIGHUP end the process at once from now on, with the exit code of the command."""
    if isinstance(ended.code, str):
        return
    code = ended.code or 0
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed or full: reported before
            stream.flush()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(number, lambda *_: os._exit(code))


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(CANCELLED)


if __name__ == "__main__":
    main()
