"""A node's workspace in a temporary folder, and the runner as it is shipped, under the oldest Python and ours."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.programs import missing

from tipcflow.domain import ExitRecord, JobCommand, JobSpec, Node
from tipcflow.remote import paths
from tipcflow.remote.bundle import runner_bytes

WAIT_S = 30.0
OLDEST = "3.7"


def oldest_python() -> str | None:
    """An interpreter of the oldest version that the runner supports."""
    found = shutil.which(f"python{OLDEST}")
    versions = [
        *sorted(Path("~/.pyenv/versions").expanduser().glob(f"{OLDEST}.*/bin/python")),
        *sorted(Path("~/.local/share/uv/python").expanduser().glob(f"cpython-{OLDEST}.*/bin/python")),
    ]
    for candidate in [*map(str, versions), *([found] if found else [])]:
        done = subprocess.run([candidate, "-c", "import ctypes, hashlib"], capture_output=True)
        if done.returncode == 0:
            return candidate
    return None


def until(condition: Callable[[], Any], what: str, seconds: float = WAIT_S) -> Any:
    """The first true value of `condition`; fails after `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    pytest.fail(f"waited {seconds:g} s for {what}")


def environment_of(pid: int) -> bytes:
    """As it was started, nothing of one that is gone."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def children_of(pid: int) -> list[int]:
    """Of a process's first thread."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Bench:
    """One node: jobs are made, started and polled as by a controller."""

    def __init__(self, folder: Path, python: str) -> None:
        self.workspace = folder / "work space"
        self.root = self.workspace / "runs" / "r1" / "src"
        self.root.mkdir(parents=True)
        self.node = Node(name="a", address="10.0.0.1", python=python, workspace=str(self.workspace))
        self.runner = Path(paths.runner_path(self.node))
        self.runner.parent.mkdir()
        self.runner.write_bytes(runner_bytes())

    def popen(self, *words: str | Path, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a subcommand of the runner."""
        argv = [self.node.python, "-I", "-S", "-X", "utf8", str(self.runner), *map(str, words)]
        return subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **(env or {})}
        )

    def call(self, *words: str | Path, env: dict[str, str] | None = None) -> Any:
        """The JSON object that a subcommand prints."""
        process = self.popen(*words, env=env)
        out, err = process.communicate(timeout=WAIT_S * 2)
        assert process.returncode == 0, err.decode()
        return json.loads(out)

    def job(self, *texts: str, step: str = "train/norm_train", legs: bool = False, **values: Any) -> Path:
        """A job folder with these commands; with `legs` each is a leg of its own."""
        commands = [
            JobCommand(text=text, cwd=".", leg=f"leg{index}" if legs else "") for index, text in enumerate(texts)
        ]
        fields = {
            "run": "r1",
            "step": step,
            "node": "a",
            "fence": 1,
            "workspace": str(self.workspace),
            "root": str(self.root),
            "commands": tuple(commands),
            "kill_after_s": 1.0,
            "sample_every_s": 0.1,
            "min_free_bytes": 0,
        }
        return self.put(JobSpec(**{**fields, **values}))

    def put(self, spec: JobSpec) -> Path:
        """Write a job's description where the controller puts it."""
        file = Path(paths.job_file(spec))
        file.parent.mkdir(parents=True)
        file.write_text(spec.model_dump_json())
        return file.parent

    def log(self, job: Path) -> str:
        """The text of the main log so far; the runner creates the file after `start` has returned."""
        log = job / "logs" / "main.log"
        return log.read_text() if log.exists() else ""

    def ended(self, job: Path) -> ExitRecord:
        """The exit record, once there is one; nothing of the job may be left then."""
        until(lambda: (job / "exit.json").exists(), f"{job}/exit.json")
        record = ExitRecord.model_validate_json((job / "exit.json").read_text())
        until(lambda: not self.ours(), "the runner to be gone")
        return record

    def end_of(self, *texts: str, **values: Any) -> ExitRecord:
        """Run a job to its end."""
        job = self.job(*texts, **values)
        self.call("start", job)
        return self.ended(job)

    def state(self, job: Path, wanted: str) -> dict[str, Any]:
        """The output of `poll`, once the job is in that state."""
        return until(lambda: (report := self.call("poll", job))["state"] == wanted and report, f"state {wanted}")

    def ours(self) -> list[int]:
        """Processes that carry the workspace's mark, read from the kernel, not by the code under test."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                env = (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"TIPCFLOW_WORKSPACE=" + os.fsencode(self.workspace) + b"\0" in env:
                found.append(int(entry.name))
        return found

    def guards(self) -> list[int]:
        """The guards of this workspace's jobs."""
        return [pid for pid in self.ours() if b"\0TIPCFLOW_GUARD=1\0" in b"\0" + environment_of(pid)]

    def kill_runner(self, pid: int) -> None:
        """SIGKILL a runner with its guard, which would end the job."""
        for guard in self.guards():
            if pid in children_of(guard):
                os.kill(guard, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Whatever a failed test left."""
        for _ in range(100):
            left = self.ours()
            if not left:
                return
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.05)


# For tests in CI under both: the others run under the oldest one in `make test-full`.
BOTH = pytest.mark.parametrize("bench", ["oldest", "ours"], indirect=True)


@pytest.fixture(params=[pytest.param("oldest", marks=pytest.mark.full), "ours"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A bench whose runner runs under the oldest supported Python, and one under ours."""
    python = oldest_python() if request.param == "oldest" else sys.executable
    if python is None:
        missing(f"no Python {OLDEST} on PATH, of pyenv or of uv (uv python install {OLDEST})")
    made = Bench(tmp_path, python)
    yield made
    made.close()


@pytest.fixture
def wait() -> Callable[..., Any]:
    """`until`, for tests."""
    return until
