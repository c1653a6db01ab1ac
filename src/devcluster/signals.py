"""Handling of Ctrl-C, SIGTERM and SIGHUP while local nodes exist: all resources are always removed.

Python may raise KeyboardInterrupt between any two lines, also during a clean-up. Here a signal raises at most
once, and never during a `hold`: set-up and clean-up run under a hold and check for a pending signal at the
points where they can stop.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A signal requested a stop.

    Attributes:
        signum: the signal's number.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signum).name}")
        self.signum = signum


class InterruptGuard:
    """Converts signals to one `Interrupted`, raised only when no resource is partially created."""

    def __init__(self) -> None:
        self._users = 0
        self._holds = 0
        self._waiting: int = 0
        self._raised = False
        self._previous: dict[int, Any] = {}

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle the signals in this context; nestable. No effect outside the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._users += 1
        if self._users == 1:
            self._waiting, self._raised = 0, False
            for number in _SIGNALS:
                # Signals that the caller ignores on purpose (nohup) remain ignored.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._handle)
        try:
            yield
        finally:
            self._users -= 1
            if self._users == 0:
                for signum, handler in self._previous.items():
                    signal.signal(signum, handler)
                self._previous.clear()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Defer signals; a pending signal is raised at the end, unless another exception is active."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._holds += 1
        try:
            yield
        except BaseException:
            self._holds -= 1
            raise
        self._holds -= 1
        self.check()

    def check(self) -> None:
        """Raise a pending signal now (called at the safe points of a set-up; safe from any thread).

        Raises:
            Interrupted: a signal was received and not raised yet.
        """
        if self._waiting and not self._raised:
            if threading.current_thread() is threading.main_thread():
                self._raised = True
            raise Interrupted(self._waiting)

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        self._waiting = self._waiting or signum
        if not self._holds:
            self.check()


interrupt_guard = InterruptGuard()
