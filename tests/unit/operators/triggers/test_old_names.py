"""Names from before the packages were renamed work where a clone's `plugins/` is Airflow's plugins folder."""

import subprocess
import sys
from pathlib import Path

import pytest

PLUGINS = Path(__file__).parents[4] / "plugins"
NAMES = {
    "operators.triggers.JobTrigger": "tipcflow_operators.triggers.JobTrigger",
    "operators.triggers.LeaseTrigger": "tipcflow_operators.triggers.LeaseTrigger",
    "operators.triggers.StepTrigger": "tipcflow_operators.triggers.StepTrigger",
    "operators.triggers.dag_run.DagRunTrigger": "tipcflow_operators.triggers.dag_run.DagRunTrigger",
    "operators.weekly.turn.TurnTrigger": "tipcflow_operators.weekly.turn.TurnTrigger",
    "operators.chain.dag.chain_dags": "tipcflow_operators.chain.dag.chain_dags",
    "operators.airflow.executor.LocalExecutor": "tipcflow_operators.airflow.executor.LocalExecutor",
}
CHECK = """
import sys
from airflow._shared.module_loading import import_string
for old, new in eval(sys.argv[1]).items():
    assert import_string(old) is import_string(new), old
"""


@pytest.mark.process
def test_stored_class_paths_and_old_imports_are_the_renamed_classes(tmp_path: Path) -> None:
    env = {"PYTHONPATH": str(PLUGINS), "AIRFLOW_HOME": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", CHECK, repr(NAMES)], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_airflow_loads_no_plugin_from_the_folder() -> None:
    # The entry point loads it; a plugin that is found twice is an import error.
    from airflow._shared.module_loading import find_path_from_directory

    found = [
        path for path in find_path_from_directory(str(PLUGINS), ".airflowignore", "glob") if path.endswith(".py")
    ]
    assert found == []
