"""A DAG run that starts runs of `certify`: a real database and git repository; Airflow's responses are fake."""

import shutil
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.stories import copy_example, open_store

from tipcflow.store import Store
from tipcflow_operators.airflow import dag_runs

ROOT = Path(__file__).parents[3]
AFTER = datetime(2026, 11, 24, tzinfo=UTC)
FILE = "test_tipc/configs/toy/train_infer_python.txt"


class DagWorld:
    """A DAG run and the DAG runs that it starts.

    Attributes:
        commits: of the suite `toy`, one per title, oldest first; each changes the params file.
        conf, params: of the DAG run.
        xcom: task -> its result.
        started: (ID, conf) of the started DAG runs.
        states: their states in Airflow.
    """

    dag_id = ""
    parent = ""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, titles: Sequence[str]) -> None:
        self.home = home
        self.states: dict[str, str] = {}
        self.started: list[tuple[str, dict[str, Any]]] = []
        self.conf: dict[str, Any] = {}
        self.xcom: dict[str, Any] = {}
        self.user: str | None = None
        monkeypatch.setenv("TIPCFLOW_HOME", str(home))
        monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(home / "configs"))
        monkeypatch.setenv("TIPCFLOW_DATABASE_URL", "")
        monkeypatch.setattr(dag_runs, "state_of", lambda dag_id, run_id: self.states.get(run_id))
        monkeypatch.setattr(dag_runs, "start", self._start)
        shutil.copytree(ROOT / "configs" / "policies", home / "configs" / "policies")
        (home / "configs" / "clusters").mkdir()
        copy_example(home / "configs/clusters/local.yaml")
        (home / "configs" / "suites").mkdir()
        suite = f"name: toy\nfolder: {home}/toy\ndialects: [PaddleClas]\n"
        (home / "configs" / "suites" / "toy.yaml").write_text(suite)
        path = home / "toy" / FILE
        path.parent.mkdir(parents=True)
        self.git("init", "--quiet")
        for title in titles:
            path.write_text(title)
            self.git("add", ".")
            self.git("commit", "--quiet", "--message", title)
        self.commits = self.git("rev-list", "--reverse", "HEAD").split()
        self.params: dict[str, Any] = {
            "suite": "toy",
            "params_file": FILE,
            "mode": "lite_train_lite_infer",
            "cluster": "local",
            "policy": "pr",
        }
        open_store(home / "tipcflow.db").close()

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=n", "-c", "user.email=n@example.com")
        command = ["git", *who, "-C", str(self.home / "toy"), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def store(self) -> Store:
        return open_store(self.home / "tipcflow.db")

    def _start(self, dag_id: str, run_id: str, *, run_after: datetime, conf: dict[str, Any], note: str) -> None:
        assert (dag_id, run_after) == ("certify", AFTER)
        assert self.parent in note
        self.started.append((run_id, conf))
        self.states[run_id] = "queued"

    def context(self) -> Any:
        dag_run = SimpleNamespace(
            dag_id=self.dag_id, run_id=self.parent, run_after=AFTER, conf=self.conf, run_type="operator_triggered",
            triggering_user_name=self.user,
        )  # fmt: skip
        ti = SimpleNamespace(xcom_pull=lambda task_ids: self.xcom[task_ids])
        return {"dag_run": dag_run, "params": self.params, "ti": ti}
