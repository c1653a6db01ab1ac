"""Commands in a container of a stand-in engine: both end together, whatever happens to the client."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tipcflow.domain import EndReason

# The engine is the same for every Python.
pytestmark = [pytest.mark.process, pytest.mark.parametrize("bench", ["ours"], indirect=True)]

INSIDE = "docker run N1 bash -c 'PADDLE_TRAINER_ID=3 sleep 300'"
# A container whose client is killed as soon as it runs.
ORPHANED = """docker run N1 bash -c 'touch "$TIPCFLOW_WORKSPACE/up"; sleep 300' &
while [ ! -e "$TIPCFLOW_WORKSPACE/up" ]; do sleep 0.02; done; kill -9 $!; """
# The client hands its words to the daemon, and waits for the container's end, or until it is killed.
CLIENT = f"""#!{sys.executable}
import json, os, socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect(os.path.join(os.path.dirname(os.path.abspath(__file__)), "socket"))
request = dict(words=sys.argv[1:], env=dict(os.environ), out=os.readlink("/proc/self/fd/1"))
link.sendall(json.dumps(request).encode() + b"\\n")
code, text = json.loads(link.makefile().read())
print(text, end="", file=sys.stderr)
sys.exit(code)
"""


class Engine:
    """The daemon: its containers are no descendants of the runner, and outlive their clients."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "docker").write_text(CLIENT)
        (folder / "docker").chmod(0o755)
        self.env = {"PATH": f"{folder}:/usr/bin:/bin"}
        self.containers: dict[str, subprocess.Popen] = {}
        self.removed: list[str] = []
        self.down = False
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(folder / "socket"))
        self.server.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                link = self.server.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.result, args=(link,), daemon=True).start()

    def result(self, link: socket.socket) -> None:
        with link, link.makefile("rb") as file:
            request = json.loads(file.readline())
            result = getattr(self, request["words"][0])(request)
            with contextlib.suppress(OSError):  # the client is gone
                link.sendall(json.dumps(result).encode())

    def run(self, request: dict) -> tuple[int, str]:
        _, name, *words = request["words"]
        if name in self.containers:
            return 125, "docker: Conflict. The container name is already in use\n"
        with Path(request["out"]).open("ab") as out:
            argv = {"env": request["env"], "stdout": out, "stderr": out, "start_new_session": True}
            self.containers[name] = subprocess.Popen(words, **argv)
        code = self.containers[name].wait()
        self.containers.pop(name, None)
        return abs(code), ""

    def rm(self, request: dict) -> tuple[int, str]:
        name = request["words"][2]
        if self.down:
            return 1, "Cannot connect to the Docker daemon\n"
        if name not in self.containers:
            return 1, f"Error: No such container: {name}\n"
        self.removed.append(name)
        os.killpg(self.containers[name].pid, signal.SIGKILL)
        while name in self.containers:
            threading.Event().wait(0.01)
        return 0, f"{name}\n"

    def running(self) -> list[str]:
        """Names of containers that are there."""
        return sorted(self.containers)

    def close(self) -> None:
        """End everything."""
        self.server.close()
        for name in self.running():
            os.killpg(self.containers[name].pid, signal.SIGKILL)


@pytest.fixture
def engine(tmp_path):
    """An engine on the jobs' PATH."""
    made = Engine(tmp_path / "engine bin")
    yield made
    made.close()


@pytest.fixture
def contained(bench, engine):
    """Makes jobs that run the container N1."""

    def make(*texts, **values):
        return bench.job(*texts, **{"container": "N1", "env": engine.env, **values})

    return make


def test_container_may_end_before_its_client(bench, engine, contained):
    job = contained("docker run N1 bash -c 'echo inside $TIPCFLOW_NODE; exit 3'")
    bench.call("start", job)
    record = bench.ended(job)
    assert (record.reason, record.exit_code, record.message) == (EndReason.EXITED, 3, "exited with 3")
    assert (job / "logs/main.log").read_text() == "inside a\n"
    assert not (job / "container").exists()


def test_orphaned_container_is_ended_with_its_client(bench, engine, contained):
    job = contained(ORPHANED + "exit 4")
    bench.call("start", job)
    record = bench.ended(job)
    assert (record.exit_code, engine.running()) == (4, [])


def test_processes_in_the_container_are_counted_and_stopped(bench, engine, contained, wait):
    job = contained(INSIDE)
    bench.call("start", job)
    wait(lambda: engine.running() == ["N1"], "the container")
    samples = job / "samples.jsonl"
    wait(lambda: samples.exists() and '"3":' in samples.read_text(), "memory of the rank inside")
    assert (job / "container").read_text() == "N1"
    bench.call("stop", job, "over")
    record = bench.ended(job)
    assert (record.reason, record.message, engine.running()) == (EndReason.STOPPED, "over", [])
    assert record.peak_rss_bytes["3"] > 0


def test_unmarked_processes_end_with_the_container(bench, engine, contained, wait):
    """Without our marks, as for a login that may not look into the container's processes."""
    job = contained("docker run N1 env -i /bin/sleep 300", deadline_s=1.0)
    bench.call("start", job)
    wait(lambda: engine.running() == ["N1"], "the container")
    assert bench.ended(job).reason is EndReason.DEADLINE
    assert (engine.running(), engine.removed) == ([], ["N1"])


def test_legs_may_use_the_same_name(bench, engine, contained):
    job = contained(ORPHANED, "docker run N1 true", legs=True, keep_going=True)
    bench.call("start", job)
    bench.ended(job)
    assert '"leg": "leg1"' in (job / "legs.jsonl").read_text()
    assert "Conflict" not in (job / "logs/leg1.log").read_text()


def test_an_engine_that_does_not_respond_is_reported_and_reap_tries_again(bench, engine, contained, wait):
    job = contained(INSIDE)
    bench.call("start", job)
    wait(lambda: engine.running() == ["N1"], "the container")
    engine.down = True
    bench.call("stop", job, "over")
    record = bench.ended(job)
    assert record.message == "over; container N1 was not removed: Cannot connect to the Docker daemon"
    job_id = "r1/train/norm_train/1"
    report = bench.call("reap", bench.workspace)["containers"]
    message = "Cannot connect to the Docker daemon"
    assert report == [{"job": job_id, "container": "N1", "removed": False, "message": message}]
    engine.down = False
    report = bench.call("reap", bench.workspace)["containers"]
    assert report == [{"job": job_id, "container": "N1", "removed": True, "message": ""}]
    assert bench.call("reap", bench.workspace)["containers"] == []


def test_a_dead_runners_container_is_ended_before_its_slot_is_used_again(bench, engine, contained, wait):
    job = contained("docker run N1 env -i /bin/sleep 300", slots=(0,))
    pid = bench.call("start", job)["pid"]
    wait(lambda: engine.running() == ["N1"], "the container")
    bench.kill_runner(pid)
    wait(lambda: not Path(f"/proc/{pid}").exists(), "the runner's end")
    engine.down = True
    after = bench.job("true", step="next", slots=(0,), env=engine.env)
    record = bench.call("start", after)["record"]
    assert record["message"] == (
        "slot 0: container N1 of r1/train/norm_train/1 was not removed: Cannot connect to the Docker daemon"
    )
    engine.down = False
    bench.call("start", bench.job("true", step="third", slots=(0,), env=engine.env))
    assert engine.running() == []
    assert not (job / "container").exists()


def test_a_missing_container_engine_is_reported(bench):
    record = bench.end_of("true", container="N1", container_engine="no-such-engine")
    assert record.exit_code == 0
    assert record.message == "container N1 was not removed: no-such-engine is not on this node"
