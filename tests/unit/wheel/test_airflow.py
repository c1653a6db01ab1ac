"""The wheel in a fresh Airflow outside the clone: plugin, executor and DAGs load (a certified run: tests/e2e)."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.installed.wheel import install, stub

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[3]
LOAD = """
import importlib, json, pkgutil, sys
import tipcflow_operators
from airflow.dag_processing.dagbag import DagBag
from airflow.plugins_manager import get_import_errors, get_plugin_info

for module in pkgutil.walk_packages(tipcflow_operators.__path__, "tipcflow_operators."):
    # Logins with roles need the extra `logins`.
    if not module.name.startswith("tipcflow_operators.access."):
        importlib.import_module(module.name)
bag = DagBag(sys.argv[1])
plugins = get_plugin_info()
print(json.dumps({
    "place": tipcflow_operators.__file__,
    "errors": bag.import_errors | get_import_errors(),
    "dags": {dag_id: len(dag.tasks) for dag_id, dag in bag.dags.items()},
    "plugins": [plugin["name"] for plugin in plugins],
}))
"""


def test_dags_and_plugin_of_the_wheel_load_in_a_fresh_airflow(wheel: Path, tmp_path: Path) -> None:
    python = install(tmp_path / "env", ["apache-airflow", f"tipcflow[airflow] @ {wheel.as_uri()}"])
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "tipcflow.py").write_text(stub())
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "TIPCFLOW_HOME": str(tmp_path / "home"),
        "TIPCFLOW_CONFIG_DIR": str(tmp_path / "configs"),
    }
    command = [python, "-P", "-c", LOAD, tmp_path / "dags"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert Path(loaded["place"]).is_relative_to(tmp_path / "env")
    assert loaded["errors"] == {}
    assert {"certify", "confirm", "maintenance", "weekly"} < set(loaded["dags"])
    assert all(loaded["dags"].values()), loaded["dags"]
    assert any("mobilenet_v3_small" in dag_id for dag_id in loaded["dags"])
    assert "tipcflow" in loaded["plugins"]
