"""`tipcflow nodes reap` for a cluster whose nodes come from Slurm."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process
FILE = """name: hpc
kind: slurm
login: {local: true}
nodes: 2
time_limit_minutes: 30
node: {python: /p, workspace: "/scratch/{node}"}
"""


def test_unreachable_controller_of_slurm_has_the_exit_code_of_an_unreachable_node(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tipcflow: Callable[..., Any]
) -> None:
    (tmp_path / "configs" / "clusters").mkdir(parents=True)
    (tmp_path / "configs" / "clusters" / "hpc.yaml").write_text(FILE)
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path / "configs"))
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "missing.conf"))
    done = tipcflow("nodes", "reap", "--cluster", "hpc")
    assert done.code == 5, done.err
    assert "hpc: unreachable: Slurm could not list the user's jobs: " in done.out
