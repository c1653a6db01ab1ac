"""Client of the supervisor process: running and ended components."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from devcluster.airflow.supervisor import GRACE_S, KILL_S
from devcluster.local_nodes.processes import kill_if_same, start_time, wait_until
from tipcflow.domain import InfraError

_END_DEADLINE_S = 60.0
Job = dict[str, Any]


class SupervisorClient:
    """A running supervisor process.

    Attributes:
        pid: of the supervisor.
        pids: of all started processes, by name, including ended ones.
        ended: exit codes by name, negative for a signal.
    """

    def __init__(self, env: Mapping[str, str], log: Path) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "devcluster.airflow.supervisor"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env=dict(env),
                start_new_session=True,
            )
        self.pid = self._process.pid
        self.pids: dict[str, int] = {}
        self.ended: dict[str, int] = {}
        self._log = log
        self._gone = threading.Event()
        threading.Thread(target=self._listen, name="airflow supervisor", daemon=True).start()

    @property
    def has_ended(self) -> bool:
        """Whether the supervisor itself has ended."""
        return self._gone.is_set()

    def first(self, job: Job | None) -> None:
        """Start the job that must succeed before all other jobs; None for no such job."""
        self._send({"first": job})

    def start(self, env: Mapping[str, str], jobs: Sequence[Job]) -> None:
        """Request the start of jobs, which start after the first job has succeeded.

        Raises:
            InfraError: the supervisor has ended.
        """
        for job in jobs:
            self.pids.pop(job["name"], None)
            self.ended.pop(job["name"], None)
        self._send({"env": dict(env), "components": list(jobs)})

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to the process of that name, and wait until it has ended.

        Raises:
            InfraError: the process never started, or does not end.
        """
        wait_until(lambda: name in self.pids, f"Airflow's {name} did not start", deadline_s=_END_DEADLINE_S)
        kill_if_same(self.pids[name], start_time(self.pids[name]), number)
        wait_until(lambda: name in self.ended, f"Airflow's {name} did not end", deadline_s=_END_DEADLINE_S)

    def close(self) -> None:
        """End all processes and wait for their end. Idempotent."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(GRACE_S + 2 * KILL_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise InfraError("the supervisor of Airflow has ended", hint=f"see {self._log}") from error

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as events:
            for line in events:
                event = json.loads(line)
                if event["event"] == "started":
                    self.pids[event["name"]] = event["pid"]
                elif event["event"] == "ended":
                    self.ended[event["name"]] = event["code"]
        self._gone.set()
