"""Supervisor process of a local Airflow: no component outlives the supervisor's owner.

Usage: python -m devcluster.airflow.supervisor

The supervisor reads JSON lines from standard input: first `{"first": JOB}`, a job that must succeed before the
components start (a database migration; may be null), then `{"env": {...}, "components": [JOB, ...]}`. A JOB is
`{"name", "argv", "log", "env"}`, with the variables of this component alone. At the end of standard input,
which also follows any kind of death of the owner, the supervisor ends all processes. It reports events as JSON
lines on standard output: `{"event": "started" | "ended" | "stopped", "name", "pid", "code"}`.

Each child has its own session. Orphans become children of the supervisor (a subreaper), and every process has a
marker in its environment, so that the supervisor finds all of them at the end.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from devcluster.local_nodes.init import descendants

MARK = "TIPCFLOW_LOCAL_AIRFLOW"
# At shutdown the api-server waits for open browser connections and the scheduler for tasks; this is the limit.
GRACE_S = 3.0
KILL_S = 10.0
_CANNOT_START = 127  # exit code of shells
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)


def _die_with_supervisor() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Supervisor:
    """The supervisor's loop: start requested jobs, reap and report children, end with standard input."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.first: int = 0
        self.waiting: dict[str, Any] | None = None
        self._text = b""

    def start(self, job: dict[str, Any], env: dict[str, str]) -> int:
        """Start one child; its output goes to the job's log. Returns: its process id, 0 if it cannot start."""
        with Path(job["log"]).open("ab") as log:
            try:
                process = subprocess.Popen(
                    job["argv"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **env, **job.get("env", {})},
                    start_new_session=True,
                    preexec_fn=_die_with_supervisor,  # noqa: PLW1509 - no threads here
                )
            except OSError as error:
                log.write(f"{error}\n".encode())
                log.flush()
                report("ended", job["name"], code=_CANNOT_START)
                return 0
        process.returncode = 0  # reaped below, so subprocess must not wait for it too
        self.names[process.pid] = job["name"]
        report("started", job["name"], pid=process.pid)
        return process.pid

    def receive(self, message: dict[str, Any]) -> None:
        """Process a message of the owner; components start after the first job."""
        if "first" in message:
            # If the first job cannot start, the components wait, as after a failure.
            self.first = (self.start(message["first"], {}) or -1) if message["first"] else 0
        else:
            self.waiting = message
        self.proceed()

    def proceed(self) -> None:
        """Start the components if no first job is pending."""
        if self.waiting is not None and not self.first:
            for job in self.waiting["components"]:
                self.start(job, self.waiting["env"])
            self.waiting = None

    def reap(self) -> None:
        """Reap ended children and report the supervisor's own."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                code = os.waitstatus_to_exitcode(status)
                if name := self.names.pop(pid, ""):
                    report("ended", name, code=code)
                if pid == self.first:
                    # After a failed migration the components wait: the owner decides.
                    self.first = 0 if code == 0 else -1
                    self.proceed()

    def run(self) -> None:
        """Run until the end of standard input or SIGTERM."""
        wake, woken = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        ending = []
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: ending.append(True))
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while not ending:
            self.reap()
            readable, _, _ = select.select([0, wake], [], [])
            if wake in readable:
                os.read(wake, 4096)
            if 0 in readable and not self._read():
                return

    def _read(self) -> bool:
        data = os.read(0, 65536)
        self._text += data
        *lines, self._text = self._text.split(b"\n")
        for line in lines:
            self.receive(json.loads(line))
        return bool(data)

    def end(self) -> None:
        """Send SIGTERM to own children, then SIGKILL to all remaining descendants; repeat for new orphans."""
        for pid in self.names:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while self.names and time.monotonic() < deadline:
            self.reap()
            time.sleep(0.02)
        mark = f"\0{MARK}={os.environ.get(MARK, '')}\0".encode()
        deadline = time.monotonic() + KILL_S
        while time.monotonic() < deadline:
            self.reap()
            left = set(descendants(mark)) - {os.getpid()}
            if not left:
                break
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        report("stopped", "")


def report(event: str, name: str, **facts: int) -> None:
    """Write one line for the owner; ignore an owner that has ended."""
    with contextlib.suppress(OSError):
        os.write(1, json.dumps({"event": event, "name": name, **facts}).encode() + b"\n")


def main() -> None:
    """Supervise Airflow until the owner ends."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    supervisor = Supervisor()
    try:
        supervisor.run()
    finally:
        supervisor.end()


if __name__ == "__main__":
    main()
