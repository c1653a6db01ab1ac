"""The keeper: a process without a terminal that owns a service until SIGTERM.

The starting command writes one JSON object to the keeper's standard input and reads JSON lines from its standard
output: `{"note": …}` for progress, then `{"ready": true}` or `{"error": …, "hint": …, "config": …}`. After `ready`
the output goes to the log, and errors to the record.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from devcluster.keep.record import Name, Record, forget, log_of, remove
from devcluster.local_nodes.processes import start_time
from devcluster.signals import Interrupted, interrupt_guard
from tipcflow.domain import ConfigError, InfraError, TipcflowError

CHECK_EVERY_S = 1.0


class Keeper:
    """What the owner of a service reports to the starting command and to the record."""

    def __init__(self, name: Name, home: Path) -> None:
        self.home = home
        self.record = Record(name, os.getpid(), start_time(os.getpid()), time.time())
        self.record.save(home)

    def note(self, line: str) -> None:
        """Report progress."""
        self._send({"note": line})

    def ready(self, facts: dict[str, Any]) -> None:
        """Report that the service is in use, and leave the starting command."""
        self.record.ready, self.record.facts = True, facts
        self.record.save(self.home)
        self._send({"ready": True})
        log = os.open(log_of(self.home, self.record.name), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(log, 1)
        os.close(log)

    def stay(self, check: Callable[[], None]) -> None:
        """Call `check` every second until a signal.

        Raises:
            Interrupted: SIGTERM was received.
        """
        while True:
            check()
            time.sleep(CHECK_EVERY_S)

    def end(self, error: TipcflowError | None) -> None:
        """Report why the service ended; without an error, forget it."""
        if error is not None and self.record.ready:
            self.record.failed = error.message
            self.record.save(self.home)
            return
        if error is None:
            remove(self.home, self.record.name)
            return
        forget(self.home, self.record.name)
        is_config = isinstance(error, ConfigError)
        self._send({"error": error.message, "hint": error.hint, "config": is_config})

    def _send(self, message: dict[str, Any]) -> None:
        line = json.dumps(message).encode() + b"\n"
        try:
            os.write(1, line)
        except OSError:  # the starting command was killed
            os.write(2, line)


def keep(name: Name, own: Callable[[Keeper, dict[str, Any]], None]) -> None:
    """Run a keeper process.

    Args:
        own: creates the service, calls `ready` and `stay`, and removes the service on every exception.
    """
    config = json.load(sys.stdin)
    keeper = Keeper(name, Path(config["home"]))
    error: TipcflowError | None = None
    try:
        with interrupt_guard.installed():
            own(keeper, config)
    except Interrupted:
        pass
    except TipcflowError as caught:
        error = caught
    except Exception as caught:
        traceback.print_exc()
        error = InfraError(
            f"{type(caught).__name__}: {caught}", hint=f"the traceback is in {log_of(keeper.home, name)}"
        )
    keeper.end(error)
