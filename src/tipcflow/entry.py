"""Entry point of the command `tipcflow`: Ctrl-C before and after the command prints no traceback.

The imports take a second, and the interpreter takes a while to end; a signal at the end keeps the exit code.

Imports nothing but the standard library before the handler is set.
"""

import contextlib
import os
import signal
import sys
from types import FrameType

# exit_code(Status.CANCELLED); importing it here would import what the handler is for.
CANCELLED = 3


def main() -> None:
    """Import the CLI and run it."""
    before = signal.getsignal(signal.SIGINT)
    # A shell starts background jobs with SIGINT ignored; they keep that.
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    from tipcflow.cli.main import main as run

    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, before)
    try:
        run()
    except SystemExit as ended:
        _keep_exit_code(ended)
        raise


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
    # Nothing has been started or written yet. An exception would be reported by whatever module is being imported.
    os._exit(CANCELLED)


if __name__ == "__main__":
    main()
