"""The wheel has everything that an existing Airflow needs, under names that collide with nothing."""

import configparser
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.support.installed.wheel import stub

from tipcflow.config.access.roles import DECISION_DAGS

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[3]
# Folder in the clone, package in the wheel.
PACKAGES = {
    "src/tipcflow": "tipcflow",
    "src/devcluster": "devcluster",
    "operators/tipcflow_operators": "tipcflow_operators",
    "plugins/tipcflow_pages": "tipcflow_pages",
}
# Imported where the clone is not on the path; its own plugin manager finds the entry point.
USE = """
import importlib, json, pkgutil, sys
from pathlib import Path
target = Path(sys.argv[1])
for name in ("tipcflow_operators", "tipcflow_pages", "devcluster"):
    package = importlib.import_module(name)
    assert Path(package.__file__).is_relative_to(target), package.__file__
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        if module.name.rpartition(".")[2] not in ("__main__", "init", "prepare"):
            importlib.import_module(module.name)
from airflow.dag_processing.dagbag import BundleDagBag
from airflow.plugins_manager import get_plugin_info
folder = Path(sys.argv[2])
bag = BundleDagBag(dag_folder=str(folder), bundle_path=folder, bundle_name="one", safe_mode=True)
plugins = [plugin for plugin in get_plugin_info() if plugin["name"] == "tipcflow"]
print(json.dumps([sorted(bag.dags), bag.import_errors, len(plugins)]))
"""


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_wheel_has_only_packages_with_unique_names(names: set[str]) -> None:
    assert {name.partition("/")[0] for name in names} == set(PACKAGES.values())


def test_every_tracked_file_of_the_packages_is_in_the_wheel(names: set[str]) -> None:
    tracked = subprocess.run(["git", "ls-files", *PACKAGES], cwd=ROOT, check=True, capture_output=True, text=True)
    expected = set()
    for file in tracked.stdout.split():
        if file.endswith("ruff.toml"):
            continue
        folder, package = next(pair for pair in PACKAGES.items() if file.startswith(f"{pair[0]}/"))
        expected.add(package + file.removeprefix(folder))
    assert expected - names == set()
    assert {"tipcflow/store/migrations/env.py", "tipcflow/remote/runner/before.py"} <= names
    assert "tipcflow_pages/templates/base.html" in names


def test_the_plugin_is_an_entry_point(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("entry_points.txt"))
        found = configparser.ConfigParser()
        found.read_string(archive.read(name).decode())
    assert dict(found["airflow.plugins"]) == {"tipcflow": "tipcflow_pages.plugin:TipcflowPlugin"}


def test_the_installed_wheel_builds_all_dags_from_one_file(wheel: Path, tmp_path: Path) -> None:
    target, dags = tmp_path / "site", tmp_path / "dags"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    dags.mkdir()
    (dags / "tipcflow.py").write_text(stub())
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TIPCFLOW", "AIRFLOW", "PYTHON"))}
    env |= {"PYTHONPATH": str(target), "TIPCFLOW_CONFIG_DIR": str(ROOT / "configs"), "AIRFLOW_HOME": str(tmp_path)}
    env["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
    done = subprocess.run(
        [sys.executable, "-c", USE, str(target), str(dags)], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    chains = [
        path.relative_to(ROOT / "configs" / "chains") for path in (ROOT / "configs" / "chains").glob("*/*/*.txt")
    ]
    ids = {"ab", "bisect", "certify", "confirm", "maintenance", "pull_request", "scaling", "weekly"}
    ids |= DECISION_DAGS.keys()
    ids |= {".".join(path.with_suffix("").parts) for path in chains}
    assert done.stdout.splitlines()[-1] == json.dumps([sorted(ids), {}, 1])
