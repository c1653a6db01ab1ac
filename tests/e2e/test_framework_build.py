"""A framework build through a real Airflow: the repository's file names its chains, and these alone run."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.certify import TIPCFLOW
from tests.support.framework.wheels import make_wheel, sha256_of
from tests.support.scheduler import Scheduler

from tipcflow.domain import Status

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(900)]
CHAINS = ("toy/toy/second", "toy/toy/third")


@pytest.fixture
def wheel(scheduler: Scheduler, tmp_path: Path) -> Iterator[Path]:
    """A wheel in Airflow's home, whose chains a repository names."""
    folder = scheduler.site.configs / "repositories"
    folder.mkdir()
    own = {"name": "o/r", "connection": "app", "suite": "toy", "cluster": "local", "chains": ["**"]}
    declared = {**own, "builds": {"toyframe": ["toy/toy/second", "**/third*"]}}
    (folder / "r.yaml").write_text(yaml.safe_dump(declared))
    yield make_wheel(scheduler.site.home / "wheels", text=str(tmp_path))
    (folder / "r.yaml").unlink()
    folder.rmdir()


def trigger(scheduler: Scheduler, *words: str) -> "subprocess.CompletedProcess[str]":
    stack = scheduler.stack
    login = {"URL": stack.url, "USER": stack.user, "PASSWORD": stack.password}
    env = {**os.environ, **{f"TIPCFLOW_AIRFLOW_{name}": value for name, value in login.items()}}
    command = [str(TIPCFLOW), "trigger", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)


def test_wheel_runs_the_declared_chains(scheduler: Scheduler, wheel: Path) -> None:
    with scheduler.site.store() as store:
        before = {run.id for run in store.runs.newest(limit=100)}
    for words in (
        ("--framework-wheel", wheel.name, "--sha256", "0" * 64),
        ("--framework", "paddlepaddle==3.4.0"),
        ("--framework", "toyframe>=1.0"),
    ):
        refused = trigger(scheduler, *words)
        assert (refused.returncode, refused.stdout) == (2, ""), refused.stderr
        assert len(refused.stderr.splitlines()) == 1, refused.stderr
    done = trigger(
        scheduler, "--framework-wheel", wheel.name, "--sha256", sha256_of(wheel), "--wait", "--timeout", "9"
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "pass"), done.stdout + done.stderr
    with scheduler.site.store() as store:
        runs = [run for run in store.runs.newest(limit=100) if run.id not in before]
        assert sorted(run.chain for run in runs) == sorted(CHAINS)
        for run in runs:
            assert run.status is Status.PASS
            assert run.framework == f"toyframe 1.0 (wheel {sha256_of(wheel)[:12]})"
