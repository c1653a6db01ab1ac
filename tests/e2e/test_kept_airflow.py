"""The commands of docs/tutorial/own-suite.md: from a clone to green runs; `down` leaves nothing."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.certify import wait_for
from tests.support.installed.tutorial import ROOT, Shell, page_commands, user_folder

from devcluster.keep.record import read
from devcluster.local_nodes import processes

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(1500)]

FILE = "train_linux_gpu_fleet_normal_infer_python_linux_gpu_cpu"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return user_folder(tmp_path / "clone")


@pytest.fixture
def tipcflow(clone: Path) -> Iterator[Shell]:
    shell = Shell(clone)
    yield shell
    shell.stop()


@pytest.fixture
def repository(tmp_path: Path) -> str:
    """The sample suite as a git repository of a user."""
    folder = tmp_path / "MySuite"
    shutil.copytree(ROOT / "examples" / "mobilenet_v3_small", folder)
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return f"file://{folder}"


def test_the_page_leads_from_a_clone_to_green_runs_and_leaves_nothing(
    tipcflow: Shell, clone: Path, repository: str
) -> None:
    names = {
        "https://git.example.org/MySuite.git": repository,
        "PARAMS": f"test_tipc/configs/mobilenet_v3_small/{FILE}.txt",
        "MySuite/MODEL/FILE": f"MySuite/mobilenet_v3_small/{FILE}",
    }
    result = {}
    for words in page_commands("own-suite.md", names):
        done = tipcflow(*words, *(["--yes"] if words[0] == "init" else []))
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        result[" ".join(words[:2])] = done.stdout
    assert list(result) == [
        f"init {repository}",
        "local up",
        f"plan {names['PARAMS']}",
        f"run {names['PARAMS']}",
        "airflow up",
        f"trigger {names['MySuite/MODEL/FILE']}",
        "status",
        "airflow down",
        "local down",
    ]
    assert result[f"run {names['PARAMS']}"].splitlines()[-1] == "pass"
    assert result[f"trigger {names['MySuite/MODEL/FILE']}"].splitlines()[-1].startswith("pass")
    assert "tipcflow_local_a, tipcflow_local_b" in result["airflow up"]
    home = clone / ".tipcflow"
    assert not (home / "local").exists()
    assert list((home / "nodes").iterdir()) == []
    assert processes.marked(f"AIRFLOW_HOME={home / 'airflow'}") == []
    assert not (clone / "configs" / "clusters" / "local.yaml").exists()


def test_a_killed_airflow_is_stale_and_down_ends_the_rest(tipcflow: Shell, clone: Path) -> None:
    home = clone / ".tipcflow"
    assert tipcflow("airflow", "up").returncode == 0
    second = tipcflow("airflow", "up")
    assert second.returncode == 2
    assert "the local Airflow is already running" in second.stderr
    record = read(home, "airflow")
    assert record is not None
    os.kill(record.pid, signal.SIGKILL)
    wait_for(lambda: not record.alive, what="the end of the keeper")
    found = json.loads(tipcflow("status", "--json").stdout)["services"]
    assert [one["condition"] for one in found if one["where"] == record.facts["url"]] == ["stale"]
    assert tipcflow("airflow", "down").returncode == 0
    assert processes.marked(f"AIRFLOW_HOME={home / 'airflow'}") == []
    assert not (home / "local").exists()
