"""The commands of docs/tutorial/own-suite.md: from a clone to green runs; `down` leaves nothing."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.certify import wait_for

from devcluster.keep.record import read
from devcluster.local_nodes import processes

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(1500)]

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(sys.executable).with_name("tipcflow"))
FILE = "train_linux_gpu_fleet_normal_infer_python_linux_gpu_cpu"
DEADLINE_S = 1200.0
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone whose configs the commands may write, with a home that shares the nodes' environment."""
    made = ROOT / ".tipcflow" / "envs"
    assert (made / "node-cpu" / ".tipcflow-complete").exists(), "make test makes the nodes' environment"
    folder = tmp_path / "clone"
    shutil.copytree(ROOT / "configs", folder / "configs", ignore=shutil.ignore_patterns("local.yaml"))
    shutil.copytree(ROOT / "dags", folder / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("plugins", "examples"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".tipcflow").mkdir()
    (folder / ".tipcflow" / "envs").symlink_to(made)
    return folder


@pytest.fixture
def tipcflow(clone: Path) -> Iterator[Command]:
    removed = ("TIPCFLOW_DATABASE_URL", "TIPCFLOW_AIRFLOW_URL")
    environ = {key: value for key, value in os.environ.items() if key not in removed}
    environ |= {"TIPCFLOW_HOME": str(clone / ".tipcflow"), "TIPCFLOW_CONFIG_DIR": str(clone / "configs")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, *arguments],
            cwd=clone,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )

    yield run
    run("airflow", "down", "--force")
    run("local", "down", "--force")


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


def commands(page: str, names: dict[str, str]) -> list[list[str]]:
    """The commands of a page, in order, with real names instead of those of the page."""
    text = (ROOT / "docs" / "tutorial" / page).read_text()
    lines = [line.partition("  #")[0].split()[1:] for line in re.findall(r"(?m)^tipcflow .*", text)]
    return [[names.get(word, word) for word in words] for words in lines]


def test_the_page_leads_from_a_clone_to_green_runs_and_leaves_nothing(
    tipcflow: Command, clone: Path, repository: str
) -> None:
    names = {
        "https://git.example.org/MySuite.git": repository,
        "PARAMS": f"test_tipc/configs/mobilenet_v3_small/{FILE}.txt",
        "MySuite/MODEL/FILE": f"MySuite/mobilenet_v3_small/{FILE}",
    }
    result = {}
    for words in commands("own-suite.md", names):
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


def test_a_killed_airflow_is_stale_and_down_ends_the_rest(tipcflow: Command, clone: Path) -> None:
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
