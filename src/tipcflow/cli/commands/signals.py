"""SIGINT, SIGTERM and SIGHUP during a run: they cancel the run, and never change the exit code after its end.

Imports nothing but the standard library: the entry point needs this module before any command is imported.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_state = {"process ends with command": False}


def end_process_with_command() -> None:
    """Record that this process ends with its command: it is `tipcflow`, not a program or a test that calls one."""
    _state["process ends with command"] = True


def process_ends_with_command() -> bool:
    """Whether nothing follows the command in this process."""
    return _state["process ends with command"]


def ignore_signals() -> None:
    """Ignore SIGINT, SIGTERM and SIGHUP; the end of `cancel_on_signals` undoes it."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def cancel_on_signals(cancel: threading.Event, note: Any, *, stay_ignored: bool = False) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP cancel the run, which then cleans up; they never kill it half-way.

    Args:
        stay_ignored: signals that are ignored at the context's end stay ignored.
    """

    def handler(number: int, _frame: FrameType | None) -> None:
        first = not cancel.is_set()
        cancel.set()
        word = signal.Signals(number).name
        note(f"{word}: stopping the run and cleaning up" if first else "still cleaning up")

    # Signals that the caller ignores stay ignored: under nohup, a closed terminal does not cancel the run.
    numbers = [n for n in _SIGNALS if signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            if not (stay_ignored and signal.getsignal(number) is signal.SIG_IGN):
                signal.signal(number, old)
