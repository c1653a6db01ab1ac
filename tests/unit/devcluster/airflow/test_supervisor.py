"""The supervisor ends all processes below it, whichever process dies first."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.airflow.supervisor import MARK
from devcluster.local_nodes import processes

pytestmark = pytest.mark.process

DEADLINE_S = 20.0
# Leaves its session, its parent and its mark, and does not mind TERM: only descent can find it.
HIDING = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        code = "import signal, time; signal.signal(15, 1); time.sleep(99)"
        os.execve(sys.executable, [sys.executable, "-c", code], {})
    os._exit(0)
time.sleep(99)
"""


class RunningSupervisor:
    """A running supervisor and its events."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder = folder
        self.marker = f"{MARK}={identity}"
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "devcluster.airflow.supervisor"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # What a buffer has read of the next lines, select does not see.
            bufsize=0,
            env=os.environ | {MARK: identity},
            start_new_session=True,
        )

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def job(self, name: str, *argv: str) -> dict[str, Any]:
        return {"name": name, "argv": argv, "log": str(self.folder / f"{name}.log")}

    def python(self, name: str, code: str) -> dict[str, Any]:
        return self.job(name, sys.executable, "-c", code)

    def event(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], DEADLINE_S)[0], "no event of the supervisor"
        return dict(json.loads(self.process.stdout.readline()))

    def alive(self) -> list[int]:
        """Everything of it, except what hides."""
        return processes.marked(self.marker)


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[RunningSupervisor]:
    made = RunningSupervisor(tmp_path, f"test-{os.getpid()}-{time.monotonic_ns()}")
    yield made
    made.process.kill()
    made.process.wait()
    for end in (made.process.stdin, made.process.stdout):
        assert end is not None
        end.close()
    for pid in made.alive():
        os.kill(pid, signal.SIGKILL)


def hidden(below: int) -> list[int]:
    """The sleepers that hide; only this test starts them, so their arguments identify them."""
    found = []
    for member in processes.everything():
        try:
            words = Path(f"/proc/{member.pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"signal.signal(15, 1)" in words and b"execve" not in words and member.parent == below:
            found.append(member.pid)
    return found


def wait(condition: Any, what: str) -> None:
    processes.wait_until(condition, what, deadline_s=DEADLINE_S)


def test_components_start_after_the_first_job_and_get_their_environment(supervisor: RunningSupervisor) -> None:
    first = supervisor.folder / "first"
    supervisor.send(
        {"first": supervisor.python("migration", f"import time; time.sleep(.3); open({str(first)!r}, 'w')")}
    )
    look = f"import os; print(os.path.exists({str(first)!r}), os.environ['GREETING'], os.getsid(0) == os.getpid())"
    supervisor.send({"env": {"GREETING": "hello"}, "components": [supervisor.python("one", look)]})
    assert [(event["event"], event["name"]) for event in (supervisor.event() for _ in range(4))] == [
        ("started", "migration"),
        ("ended", "migration"),
        ("started", "one"),
        ("ended", "one"),
    ]
    assert (supervisor.folder / "one.log").read_text() == "True hello True\n"


def test_component_may_have_separate_variables(supervisor: RunningSupervisor) -> None:
    look = "import os; print(os.environ['GREETING'])"
    own = {**supervisor.python("one", look), "env": {"GREETING": "good evening"}}
    supervisor.send({"first": None})
    supervisor.send({"env": {"GREETING": "hello"}, "components": [own, supervisor.python("two", look)]})
    for _ in range(4):
        supervisor.event()
    found = [(supervisor.folder / f"{name}.log").read_text() for name in ("one", "two")]
    assert found == ["good evening\n", "hello\n"]


def test_a_failed_first_job_starts_nothing(supervisor: RunningSupervisor) -> None:
    supervisor.send({"first": supervisor.python("migration", "raise SystemExit(7)")})
    supervisor.send({"env": {}, "components": [supervisor.python("one", "pass")]})
    assert supervisor.event()["event"] == "started"
    assert supervisor.event() == {"event": "ended", "name": "migration", "code": 7}
    assert supervisor.process.stdin is not None
    supervisor.process.stdin.close()
    assert supervisor.event()["event"] == "stopped"


def test_a_component_that_cannot_start_is_reported_as_ended(supervisor: RunningSupervisor) -> None:
    supervisor.send({"first": None})
    supervisor.send(
        {"env": {}, "components": [supervisor.job("one", "/no/such/program"), supervisor.python("two", "pass")]}
    )
    assert supervisor.event() == {"event": "ended", "name": "one", "code": 127}
    assert "No such file" in (supervisor.folder / "one.log").read_text()
    assert supervisor.event()["name"] == "two"


def test_a_component_that_dies_is_reported(supervisor: RunningSupervisor) -> None:
    supervisor.send({"first": None})
    supervisor.send(
        {"env": {}, "components": [supervisor.job("one", "sleep", "99"), supervisor.job("two", "sleep", "99")]}
    )
    pids = {event["name"]: event["pid"] for event in (supervisor.event(), supervisor.event())}
    os.kill(pids["one"], signal.SIGKILL)
    assert supervisor.event() == {"event": "ended", "name": "one", "code": -9}
    assert processes.start_time(pids["two"])


def started(supervisor: RunningSupervisor) -> list[int]:
    """A component that hides another process. Returns: all pids of it."""
    supervisor.send({"first": None})
    supervisor.send({"env": {}, "components": [supervisor.python("hiding", HIDING)]})
    pid = supervisor.event()["pid"]
    wait(lambda: hidden(supervisor.process.pid), "the hiding process becomes the supervisor's child")
    return [pid, *hidden(supervisor.process.pid)]


def test_end_of_the_owner_ends_hidden_processes(supervisor: RunningSupervisor) -> None:
    pids = started(supervisor)
    assert len(pids) == 2
    assert supervisor.process.stdin is not None
    supervisor.process.stdin.close()  # as the kernel does it for an owner that was killed
    assert supervisor.event()["event"] == "ended"
    assert supervisor.event()["event"] == "stopped"
    assert supervisor.process.wait(DEADLINE_S) == 0
    assert [pid for pid in pids if processes.start_time(pid)] == []


def test_terminating_the_supervisor_ends_everything(supervisor: RunningSupervisor) -> None:
    pids = started(supervisor)
    supervisor.process.send_signal(signal.SIGTERM)
    assert supervisor.process.wait(DEADLINE_S) == 0
    assert [pid for pid in pids if processes.start_time(pid)] == []


def test_components_do_not_outlive_a_killed_supervisor(supervisor: RunningSupervisor) -> None:
    supervisor.send({"first": None})
    supervisor.send({"env": {}, "components": [supervisor.job("one", "sleep", "99")]})
    pid = supervisor.event()["pid"]
    supervisor.process.kill()
    wait(lambda: not processes.start_time(pid), "the component ends with its supervisor")
