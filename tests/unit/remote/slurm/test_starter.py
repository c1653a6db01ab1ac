"""The starter of an allocation, as a process: what it starts, and when it ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tipcflow.domain import JobSpec, Node, SlurmStep
from tipcflow.remote import commands, paths
from tipcflow.remote.bundle import runner_bytes
from tipcflow.remote.runner import start
from tipcflow.remote.slurm import commands as slurm
from tipcflow.remote.slurm.starter import LAUNCHER, name_of

pytestmark = pytest.mark.process
WAIT_S = 30.0


class Starter:
    """A running starter of job `job` on node n1."""

    def __init__(self, first_s: float = 60.0, *, below: tuple[str, ...] = ()) -> None:
        self.job = uuid.uuid4().hex[:12]
        self.env = {**os.environ, "SLURM_JOB_ID": self.job, "SLURMD_NODENAME": "n1", "SLURM_PROCID": "0"}
        text = f"{slurm._starter()}\nsys.exit(serve({first_s}, 1.0))"
        self.process = subprocess.Popen([*below, sys.executable, "-I", "-S", "-c", text], env=self.env)

    def request(self, **request: object) -> bytes:
        """Return the response to a request."""
        deadline = time.monotonic() + WAIT_S
        while True:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                try:
                    client.connect("\0" + name_of(self.job, "n1"))
                except OSError:
                    assert time.monotonic() < deadline
                    time.sleep(0.02)
                    continue
                client.settimeout(WAIT_S)
                client.sendall(json.dumps(request).encode() + b"\n")
                with client.makefile("rb") as lines:
                    return lines.read()


@pytest.fixture
def starter() -> Iterator[Starter]:
    made = Starter()
    yield made
    made.process.kill()
    made.process.wait()


def test_command_prints_to_its_client(starter: Starter) -> None:
    assert (
        starter.request(words=["/bin/sh", "-c", "echo $NAME; ps -o sid= -p $$"], env={"NAME": "x"}).split()[0]
        == b"x"
    )


def test_command_has_no_variables_of_launchers_but_the_job(starter: Starter) -> None:
    names = {line.split("=")[0] for line in starter.request(words=["/usr/bin/env"]).decode().splitlines()}
    assert {name for name in names if LAUNCHER.fullmatch(name)} == {"SLURM_JOB_ID"}


def test_request_without_command_is_a_greeting(starter: Starter) -> None:
    assert starter.request() == b"{}\n"
    text = f"{slurm._starter()}\nsys.exit(greet())"
    assert (
        subprocess.run([sys.executable, "-I", "-S", "-c", text], env=starter.env, timeout=WAIT_S).returncode == 0
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="requires root: a process of another user holds the socket")
def test_greeting_ends_if_another_user_has_the_socket() -> None:
    job, text = uuid.uuid4().hex[:12], f"{slurm._starter()}\nPATIENCE_S = 1.0\nsys.exit(greet())"
    env = {**os.environ, "SLURM_JOB_ID": job, "SLURMD_NODENAME": "n1"}
    hold = (
        "import os, socket, time; server = socket.socket(socket.AF_UNIX); os.setuid(65534); "
        f"server.bind('\\0' + {name_of(job, 'n1')!r}); server.listen(64); "
        "print('bound', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE) as stranger:
        assert stranger.stdout is not None
        assert stranger.stdout.readline() == b"bound\n"
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", text], env=env, timeout=WAIT_S, capture_output=True, text=True
        )
        stranger.kill()
    assert (done.returncode, done.stderr) == (
        1,
        "the starter of the allocation does not respond: its socket belongs to another user\n",
    )


def test_term_waits_for_the_orphans_of_commands(starter: Starter, tmp_path: Path) -> None:
    done = tmp_path / "done"
    script = f"(setsid sh -c 'sleep 1.5; touch {done}' >/dev/null 2>&1 &)"
    starter.request(words=["/bin/sh", "-c", script])
    starter.process.send_signal(signal.SIGTERM)
    assert starter.process.wait(WAIT_S) == 0
    assert done.exists()


def test_starter_without_its_parent_ends_all_processes(tmp_path: Path) -> None:
    """The parent stands for slurmstepd: Slurm cannot end the processes of its step any more."""
    starter = Starter(below=("/bin/sh", "-c", '"$@"; exit', "stepd"))
    obeys = f"trap 'touch {tmp_path}/record; exit' TERM; echo $$; exec >/dev/null; sleep 50 & wait"
    ignores = "trap '' TERM; echo $$; exec >/dev/null; sleep 50"
    words = ["/bin/sh", "-c", '(/bin/sh -c "$1" &)', "sh"]
    try:
        pids = [int(starter.request(words=[*words, script])) for script in (obeys, ignores)]
    finally:
        starter.process.kill()
        starter.process.wait()
    deadline = time.monotonic() + WAIT_S
    while any(map(is_running, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert (tmp_path / "record").exists()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client, pytest.raises(ConnectionRefusedError):
        client.connect("\0" + name_of(starter.job, "n1"))


def test_starter_without_any_request_ends() -> None:
    assert Starter(first_s=0.1).process.wait(WAIT_S) == 0


def test_runner_starts_jobs_below_the_starter(starter: Starter, tmp_path: Path) -> None:
    """The node runner as it is shipped, started by a short process that ends at once."""
    place = SlurmStep(job=starter.job)
    node = Node(name="n1", address="127.0.0.1", python=sys.executable, workspace=str(tmp_path), slurm=place)
    runner = Path(paths.runner_path(node))
    runner.parent.mkdir()
    runner.write_bytes(runner_bytes())
    job = tmp_path / "jobs" / "r" / "s" / "1"
    job.mkdir(parents=True)
    (tmp_path / "root").mkdir()
    spec = {
        "run": "r", "step": "s", "attempt": 1, "node": "n1", "fence": 1, "slots": [0], "workspace": str(tmp_path),
        "root": str(tmp_path / "root"), "deadline_s": 60,
        "commands": [{"leg": "", "cwd": ".", "text": "sleep 1; echo done > ../done"}],
    }  # fmt: skip
    (job / "job.json").write_text(JobSpec.model_validate(spec).model_dump_json())
    starter.request()
    out = subprocess.run(
        commands.start(node, str(job)), shell=True, capture_output=True, text=True, timeout=WAIT_S
    )
    report = json.loads(out.stdout)
    assert report["state"] in ("running", "ended"), out
    assert ancestors(int(report["pid"])) & {starter.process.pid}
    deadline = time.monotonic() + WAIT_S
    while not (tmp_path / "done").exists():
        assert time.monotonic() < deadline, (job / "runner.log").read_text()
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    """Return whether a process has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def ancestors(pid: int) -> set[int]:
    """Return the processes above a process."""
    found: set[int] = set()
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        found.add(pid)
    return found


def test_job_without_a_starter_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "STARTER_S", 0.3)
    (tmp_path / "job.json").write_text(json.dumps({"run": "r", "step": "s", "attempt": 1, "node": "n1"}))
    report = start.start_below("nojob/n1", str(tmp_path))
    assert report["state"] == "ended"
    assert report["record"]["reason"] == "refused"
    assert "the starter of Slurm allocation nojob does not respond" in report["record"]["message"]
