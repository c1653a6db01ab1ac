"""Start and end of keeper processes."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from devcluster.keep.record import Name, Record, forget, log_of, read, remove
from devcluster.local_nodes.processes import kill_if_same, start_time, wait_until
from devcluster.signals import interrupt_guard
from tipcflow.domain import ConfigError, InfraError
from tipcflow.domain.numbers.units import limit

# The service's own deadline is shorter; this one is for a keeper that reports nothing.
START_DEADLINE_S = 900.0
END_DEADLINE_S = 90.0
_POLL_S = 0.2
_LOG_LINES = 15


def start(home: Path, name: Name, config: dict[str, Any], report: Callable[[str], None]) -> Record:
    """Start a service and wait until it is ready; call it under `exclusive` and `interrupt_guard`.

    Args:
        name: the module `devcluster.keep.<name>` is the keeper's program.
        config: what the program needs, as JSON.
        report: receives progress messages.

    Raises:
        ConfigError, InfraError: the service did not start; its resources are removed.
        Interrupted: a signal was received; the resources are removed.
    """
    log = log_of(home, name)
    log.unlink(missing_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", f"devcluster.keep.{name}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            cwd=home,
            start_new_session=True,
        )
    born = start_time(process.pid)
    try:
        assert process.stdin is not None
        with process.stdin as stdin:
            stdin.write(json.dumps({**config, "home": str(home)}).encode())
        _wait_ready(process, name, log, report)
    except BaseException:
        with interrupt_guard.hold():
            _end(process.pid, born)
            process.wait(END_DEADLINE_S)
            forget(home, name)
        raise
    record = read(home, name)
    if record is None:
        raise InfraError(f"the local {name} ended as soon as they were ready", hint=f"see {log}")
    # The keeper is not a child to wait for any longer.
    process.returncode = 0
    return record


def _wait_ready(process: "subprocess.Popen[bytes]", name: Name, log: Path, report: Callable[[str], None]) -> None:
    assert process.stdout is not None
    deadline = time.monotonic() + START_DEADLINE_S
    text = b""
    with process.stdout as stdout:
        while time.monotonic() < deadline:
            interrupt_guard.check()
            if not select.select([stdout], [], [], _POLL_S)[0]:
                continue
            data = os.read(stdout.fileno(), 65536)
            *lines, text = (text + data).split(b"\n")
            for message in map(json.loads, lines):
                if "error" in message:
                    kind = ConfigError if message["config"] else InfraError
                    raise kind(message["error"], hint=message["hint"])
                if "ready" in message:
                    return
                report(message["note"])
            if not data:
                raise InfraError(f"the process of the local {name} ended\n{_tail(log)}")
    raise InfraError(f"the local {name} did not start within {limit(START_DEADLINE_S)}", hint=f"see {log}")


def stop(home: Path, record: Record) -> None:
    """End a service's keeper, which removes its resources; SIGKILL if it does not end.

    Raises:
        InfraError: the process does not end.
    """
    if record.alive:
        _end(record.pid, record.started)
    remove(home, record.name)


def _end(pid: int, born: int) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        kill_if_same(pid, born, number)
        try:
            wait_until(lambda: start_time(pid) != born, f"process {pid} did not end", deadline_s=END_DEADLINE_S)
        except InfraError:
            if number == signal.SIGKILL:
                raise
        else:
            return


def _tail(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
    except OSError:
        lines = []
    return f"last lines of {log}:\n" + ("\n".join(f"  {line}" for line in lines) or "  (empty)")
