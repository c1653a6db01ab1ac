"""`tipcflow demo` through Airflow as a user runs it: interrupted at several moments it leaves nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster.local_nodes import processes
from tipcflow.store import Store

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [str(Path(sys.executable).with_name("tipcflow")), "demo"]
DEADLINE_S = 300.0
# The last line on the screen when the signal is sent, and whether a run exists by then.
MOMENTS = [
    pytest.param("creating Airflow's database", signal.SIGINT, False, marks=pytest.mark.full),
    pytest.param("starting Airflow", signal.SIGTERM, False, marks=pytest.mark.full),
    pytest.param("prepare started", signal.SIGINT, True, marks=pytest.mark.full),
    pytest.param("train started", signal.SIGTERM, True, marks=pytest.mark.full),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that shares the nodes' environment with this clone, so that nothing is installed."""
    made = ROOT / ".tipcflow" / "envs"
    assert (made / "node-cpu" / ".tipcflow-complete").exists(), "make test makes the nodes' environment"
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "envs").symlink_to(made)
    return tmp_path / "home"


def of_home(home: Path) -> list[int]:
    return processes.marked(f"AIRFLOW_HOME={home / 'airflow'}")


@pytest.mark.parametrize(("moment", "number", "has_run"), MOMENTS)
def test_interrupted_demo_leaves_nothing(
    home: Path, moment: str, number: signal.Signals, has_run: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIPCFLOW_HOME", str(home))
    process = subprocess.Popen(
        COMMAND, cwd=ROOT, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    messages = ""
    for line in process.stderr:
        messages += line
        if moment in line:
            break
    assert of_home(home) != []
    process.send_signal(number)
    output, more = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 3, output + messages + more
    assert output.strip().splitlines()[-1] == "cancelled"
    assert of_home(home) == []
    assert list((home / "nodes").glob("*")) == []
    if has_run:
        with Store.open() as store:
            (run,) = store.runs.newest()
            assert (run.status, store.leases.all()) == ("cancelled", [])
    password = (home / "airflow" / "passwords.json").read_text().split('"')[3]
    assert password not in messages + more + output
