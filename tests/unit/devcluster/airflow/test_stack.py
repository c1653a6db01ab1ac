"""The four real components of Airflow with nothing to do: they start, a dead one is named, and all end."""

import json
import os
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.airflow.stack import COMPONENTS, Stack, airflow_stack
from devcluster.local_nodes import processes
from tipcflow.domain import InfraError

# Everyday the end-to-end tests start such an Airflow.
pytestmark = [pytest.mark.process, pytest.mark.full, pytest.mark.timeout(600)]

CONFIGS = Path(__file__).resolve().parents[4] / "configs"
OWNER = """
import sys, time
from pathlib import Path
from devcluster.airflow.stack import starting_airflow
home = Path(sys.argv[1])
with starting_airflow(home, dags=home, configs=Path(sys.argv[2])) as stack:
    stack.start({})
    while len(stack.pids) < 4:
        time.sleep(0.05)
    print("up", flush=True)
    time.sleep(99)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home for all tests, so that the database is made once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def stack(home: Path) -> Iterator[Stack]:
    """Shared, for a start takes half a minute; the last test closes it."""
    messages: list[str] = []
    (home / "dags").mkdir()
    with airflow_stack(home, dags=home / "dags", configs=CONFIGS, report=messages.append) as made:
        assert made.password not in "\n".join(messages)
        yield made


def post(url: str, data: dict[str, str]) -> dict[str, str]:
    request = urllib.request.Request(url, json.dumps(data).encode(), {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=30) as result:
        return dict(json.load(result))


def of_home(home: Path) -> list[int]:
    return processes.marked(f"AIRFLOW_HOME={home / 'airflow'}")


def test_stack_accepts_its_user_and_prints_no_password(stack: Stack, home: Path) -> None:
    assert list(stack.components) == list(COMPONENTS)
    assert sorted(stack.pids) == sorted([*COMPONENTS, "migration"])
    token = post(f"{stack.url}/auth/token", {"username": stack.user, "password": stack.password})
    assert token["access_token"]
    assert stack.password not in repr(stack)
    for path in (stack.passwords_file, stack.airflow_home / "airflow.cfg"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    logs = "".join(path.read_text() for path in stack.components.values())
    assert stack.password not in logs
    assert len(of_home(home)) >= len(COMPONENTS)


def test_the_home_of_a_living_one_is_refused(stack: Stack, home: Path) -> None:
    with pytest.raises(InfraError, match=f"already running by process {os.getpid()}, at {stack.url}"):
        Stack(home, stack.folders, env={})
    stack.check()


def test_dead_component_is_named_with_its_log_and_restartable(stack: Stack) -> None:
    stack.check()
    stack.kill("triggerer")
    message = r"Airflow's triggerer ended with exit code -9\nlast lines of .*triggerer.log:\n  "
    with pytest.raises(InfraError, match=message):
        stack.check()
    with pytest.raises(InfraError, match=message):
        stack.wait_ready()
    stack.restart("triggerer")
    stack.wait_ready()
    stack.check()


def test_closing_leaves_no_process(stack: Stack, home: Path) -> None:
    stack.close()
    assert of_home(home) == []
    with pytest.raises(InfraError, match="was closed"):
        stack.check()


def test_a_killed_owner_leaves_no_process(home: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(home), str(CONFIGS)], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == "up\n"
    assert len(of_home(home)) >= len(COMPONENTS)
    owner.kill()
    owner.communicate()
    deadline = time.monotonic() + 30
    while of_home(home) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert of_home(home) == []
