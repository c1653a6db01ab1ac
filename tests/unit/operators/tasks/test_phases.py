"""What task `resolve` refuses before it plans."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tipcflow.domain import ConfigError
from tipcflow_operators.tasks.phases import refuse_local_login

FILE = """name: hpc
kind: slurm
login: {login}
nodes: 2
time_limit_minutes: 120
node: {{python: /p, workspace: "/scratch/{{node}}"}}
"""


def request_for(folder: Path, login: str) -> Any:
    """Stands for a request for the cluster."""
    (folder / "clusters").mkdir()
    (folder / "clusters" / "hpc.yaml").write_text(FILE.format(login=login))
    return SimpleNamespace(cluster="hpc", config_dir=folder)


@pytest.mark.parametrize("login", ["{local: true}", "{ssh: {alias: hpc}}"])
def test_slurm_without_a_connection_is_refused(tmp_path: Path, login: str) -> None:
    with pytest.raises(ConfigError, match=r"hpc: login.connection: is required in Airflow"):
        refuse_local_login(request_for(tmp_path, login))


def test_slurm_with_a_connection_is_accepted(tmp_path: Path) -> None:
    refuse_local_login(request_for(tmp_path, "{connection: hpc_login}"))
