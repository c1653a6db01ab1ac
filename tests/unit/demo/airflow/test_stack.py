"""The four real components of Airflow with nothing to do: they start, a dead one is named, and all end."""

import json
import os
import signal
import stat
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tipcflow.demo import processes
from tipcflow.demo.airflow.stack import COMPONENTS, Stack, airflow_stack
from tipcflow.domain import InfraError

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]

CONFIGS = Path(__file__).resolve().parents[4] / "configs"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home for all tests, so that the database is made once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def stack(home: Path, said: list[str]) -> Iterator[Stack]:
    dags = home / "dags"
    dags.mkdir(exist_ok=True)
    with airflow_stack(home, dags=dags, configs=CONFIGS, report=said.append) as made:
        yield made


def post(url: str, data: dict[str, str]) -> dict[str, str]:
    request = urllib.request.Request(url, json.dumps(data).encode(), {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=30) as answer:
        return dict(json.load(answer))


def of_home(home: Path) -> list[int]:
    return processes.marked(f"AIRFLOW_HOME={home / 'airflow'}")


def test_it_starts_lets_its_user_in_and_leaves_nothing(stack: Stack, home: Path, said: list[str]) -> None:
    assert list(stack.components) == list(COMPONENTS)
    token = post(f"{stack.url}/auth/token", {"username": stack.user, "password": stack.password})
    assert token["access_token"]
    assert stack.password not in repr(stack)
    for path in (stack.passwords_file, stack.airflow_home / "airflow.cfg"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    logs = "".join(path.read_text() for path in stack.components.values())
    assert stack.password not in logs
    assert stack.password not in "\n".join(said)
    assert len(of_home(home)) >= len(COMPONENTS)
    with pytest.raises(InfraError, match=f"already running by process {os.getpid()}, at {stack.url}"):
        Stack(home, stack.folders, env={})
    stack.close()
    assert of_home(home) == []


def test_a_component_that_dies_is_named_with_its_log(stack: Stack, home: Path) -> None:
    stack.check()
    os.kill(stack.pids["scheduler"], signal.SIGKILL)
    with pytest.raises(
        InfraError, match=r"Airflow's scheduler ended with exit code -9\nlast lines of .*scheduler.log"
    ):
        check_until(stack, time.monotonic() + 20)
    stack.close()
    assert of_home(home) == []


def check_until(stack: Stack, deadline: float) -> None:
    while time.monotonic() < deadline:
        stack.check()
        time.sleep(0.05)
