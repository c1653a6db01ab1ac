"""Transfers of objects to this machine, which requests for the same object share.

A transfer cannot be stopped: the libraries of stores have waits without a deadline. So it continues after the
deadline of a request, and a later request waits for the same transfer, or finds the file.
"""

import os
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from tipcflow.domain import InfraError
from tipcflow.domain.numbers.units import counted, limit, size
from tipcflow.execute.objects.deadline import AT_ONCE


@dataclass(frozen=True)
class _Transfer:
    """A transfer that is under way; `file` is what it writes to."""

    file: Path
    ended: "Future[None]" = field(default_factory=Future)


class Transfers:
    """The transfers of a process.

    Args:
        most: maximum number at the same time.
    """

    def __init__(self, most: int = AT_ONCE) -> None:
        self._most = most
        self._running: dict[Hashable, _Transfer] = {}
        self._changed = threading.Condition()

    def wait(
        self, key: Hashable, file: Path, call: Callable[[Path], object], *, count: int, seconds: float, what: str
    ) -> None:
        """Wait for the transfer with that key; start it unless it is under way.

        Args:
            file: where a new transfer writes; `call` gets it, and has no deadline.
            count: expected size in bytes, 0 if unknown.
            seconds: deadline of this request.
            what: begins messages about the deadline.

        Raises:
            InfraError: the transfer continues after the deadline, or was not started by then.
            Exception: that of `call`.
        """
        until = time.monotonic() + seconds
        transfer = self._joined(key, file, call, seconds)
        if transfer is None:
            others = counted(self._most, "other transfer")
            raise InfraError(f"{what}: {others} did not end within {limit(seconds)}; try again", passing=True)
        try:
            transfer.ended.result(timeout=max(0.0, until - time.monotonic()))
        except TimeoutError:
            if transfer.ended.done():
                raise  # that of `call`
            raise InfraError(f"{what}: {_progress(transfer.file, count, seconds)}", passing=True) from None

    def _joined(
        self, key: Hashable, file: Path, call: Callable[[Path], object], seconds: float
    ) -> _Transfer | None:
        """Return the transfer with that key, after its start if there is none; None if too many are under way."""
        with self._changed:
            self._changed.wait_for(lambda: key in self._running or len(self._running) < self._most, seconds)
            if key not in self._running and len(self._running) < self._most:
                transfer = _Transfer(file)
                threading.Thread(
                    target=self._run, args=(key, transfer, call), name="transfer", daemon=True
                ).start()
                self._running[key] = transfer
            return self._running.get(key)

    def _run(self, key: Hashable, transfer: _Transfer, call: Callable[[Path], object]) -> None:
        error: BaseException | None = None
        try:
            call(transfer.file)
        except BaseException as caught:
            error = caught
        with self._changed:
            del self._running[key]
            self._changed.notify_all()
        if error is None:
            transfer.ended.set_result(None)
        else:
            transfer.ended.set_exception(error)


def transfers() -> Transfers:
    """Return the transfers of this process: a forked one has no thread of its parent."""
    return _transfers(os.getpid())


@lru_cache(maxsize=1)
def _transfers(pid: int) -> Transfers:
    return Transfers()


def _progress(file: Path, count: int, seconds: float) -> str:
    """Return how much of a transfer that continues has been written."""
    try:
        written = file.stat().st_size
    except OSError:
        written = 0
    if not written:
        return f"no response within {limit(seconds)}"
    of = f" of {size(count)}" if count else ""
    return f"not complete within {limit(seconds)}: {size(written)}{of} copied; the copy continues: try again"
