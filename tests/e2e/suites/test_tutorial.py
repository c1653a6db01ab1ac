"""The commands of docs/tutorial/real-suite.md: from a clone of PaddlePaddle/models to green runs.

With `TIPC_SUITES` on the real repository, otherwise on a repository with the interfaces of its scripts.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.e2e.suites.public_site import SUITES, WEIGHTS, changed, git
from tests.support.installed.tutorial import ROOT, Shell, page_commands, user_folder

from devcluster.local_nodes import processes

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(1500)]

URL = "https://github.com/PaddlePaddle/models.git"
STEP6 = "tutorials/mobilenetv3_prod/Step6"
CHAIN = "Step6/mobilenet_v3_small/train_fleet_infer_python"


@pytest.fixture(params=["public", pytest.param("made", id="made, not the real one")])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The repository that git clones instead of the page's."""
    if request.param == "public":
        if not (SUITES / "models").is_dir():
            pytest.skip("TIPC_SUITES names no folder with clones of the public suites")
        # Without the history: mirrors leave out its largest files.
        made = changed("models", tmp_path / "origin")
        shutil.rmtree(made / ".git")
    else:
        made = tmp_path / "origin" / "models"
        shutil.copytree(ROOT / "examples" / "mobilenet_v3_small", made / STEP6)
    git(made, "init", "-q")
    git(made, "add", "-A")
    git(made, "commit", "-qm", "the only commit")
    return made


@pytest.fixture
def shell(repository: Path, tmp_path: Path) -> Iterator[Shell]:
    """A shell whose git clones the repository."""
    replaced = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{repository}.insteadOf",
        "GIT_CONFIG_VALUE_0": URL,
    }
    made = Shell(user_folder(tmp_path / "clone"), **replaced)
    yield made
    made.stop()


def replace_network(folder: Path, mirror: Path) -> None:
    """Let the nodes get from folders what they get from servers on the page."""
    weights = mirror / WEIGHTS.removeprefix("https://")
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"unused")
    cluster = folder / "configs" / "clusters" / "local.yaml"
    head, _, text = cluster.read_text().partition("\n")
    content = yaml.safe_load(text)
    for node in content["nodes"]:
        node["mirrors"] = {"https://": str(mirror)}
        node["env"] = {**node.get("env", {}), "PIP_NO_INDEX": "1", "PYTHONPATH": str(SUITES / "autolog")}
    cluster.write_text(f"{head}\n{yaml.safe_dump(content)}")


def test_the_page_leads_from_a_clone_to_green_runs(shell: Shell, tmp_path: Path) -> None:
    result = {}
    for words in page_commands("real-suite.md", {}):
        done = shell(*words, *(["--yes"] if words[0] == "init" else []))
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        result[" ".join(words[:2])] = done.stdout
        if words[:2] == ["local", "up"]:
            replace_network(shell.folder, tmp_path / "mirror")
    params = "test_tipc/configs/mobilenet_v3_small/train_fleet_infer_python.txt"
    assert list(result) == [
        "git clone",
        "init models",
        f"lint models/{STEP6}/{params}",
        "local up",
        f"plan {params}",
        f"run {params}",
        "airflow up",
        f"trigger {CHAIN}",
        "show latest",
        "certificate show",
        "airflow down",
        "local down",
    ]
    assert "suites/models_step6.yaml describes this repository" in result["init models"]
    assert result[f"run {params}"].splitlines()[-1] == "pass"
    assert result[f"trigger {CHAIN}"].splitlines()[-1].startswith("pass")
    assert CHAIN in result["show latest"]
    assert "ranks joined one group" in result["show latest"]
    home = shell.folder / ".tipcflow"
    assert not (home / "local").exists()
    assert processes.marked(f"AIRFLOW_HOME={home / 'airflow'}") == []
