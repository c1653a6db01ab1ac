"""A real Airflow with real nodes, for tests: the shipped DAGs, and chains of the toy suite."""

import json
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
from tests.support.certify import MODE, ROOT, Site, wait_for

from devcluster.airflow.stack import Stack
from tipcflow.airflow_api import Airflow, DagRun, TaskInstance
from tipcflow.domain import Run

CHAIN = "toy/toy/train_infer_python"
DAG = "toy.toy.train_infer_python"
RUN_S = 240.0
TRIES_OF_500 = 3
# In the environment of every component: tasks inherit it, and it must leave the processes nowhere.
SITE_PASSWORD = f"environment{secrets.token_hex(8)}"
# Calls the function that Airflow's API for tasks calls: a request to this API needs the token of a running task.
BY_TASK = """import json
import sys

from airflow.api.common.trigger_dag import trigger_dag
from airflow.utils.types import DagRunTriggeredByType, DagRunType

trigger_dag(
    dag_id=sys.argv[1],
    run_id=sys.argv[2],
    conf=json.loads(sys.argv[3]),
    run_type=DagRunType.OPERATOR_TRIGGERED,
    triggered_by=DagRunTriggeredByType.OPERATOR,
    replace_microseconds=False,
)
"""
STUB = '''"""The chains of suite toy: one Airflow DAG per params file in configs/chains/toy."""

from tipcflow_operators.chain.dag import chain_dags

globals().update(chain_dags("toy"))
'''


def make_catalog(site: Site, names: tuple[str, ...] = ("train_infer_python",)) -> Path:
    """configs/chains/toy of these names, each a copy of the toy's params file, and a folder of DAGs."""
    dags = site.home.parent / "dags"
    shutil.copytree(ROOT / "dags", dags, ignore=shutil.ignore_patterns("chains_*", "__pycache__"))
    (dags / "chains_toy.py").write_text(STUB)
    folder = site.suite / "test_tipc" / "configs" / "toy"
    for name in names:
        if not (folder / f"{name}.txt").exists():
            shutil.copy(folder / "train_infer_python.txt", folder / f"{name}.txt")
        chain = site.configs / "chains" / "toy" / "toy" / f"{name}.txt"
        chain.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / f"{name}.txt", chain)
    return dags


class Scheduler:
    """A user's actions in Airflow, over its REST API, and the resulting state in the metrics database."""

    def __init__(self, site: Site, stack: Stack) -> None:
        self.site = site
        self.stack = stack
        self.api = Airflow(stack.url, user=stack.user, password=stack.password)
        self._count = 0

    def wait_for_dags(self, *dag_ids: str) -> None:
        """Wait until the dag-processor has read them."""
        wait_for(
            lambda: set(dag_ids) <= {dag.dag_id for dag in self.api.dags()},
            what=f"the DAGs {', '.join(dag_ids)}: {self.api.import_errors()}",
            seconds=120,
        )

    def start(self, dag_id: str = DAG, *, trigger: str = "test", **conf: Any) -> DagRun:
        """Trigger a run; the run's trigger is the first part of the DAG run's id."""
        self._count += 1
        fields = (
            conf if dag_id in ("weekly", "maintenance", "scaling") else {"mode": MODE, "cluster": "local", **conf}
        )
        return self.api.trigger(dag_id, fields, f"{trigger}__{time.time_ns()}_{self._count}")

    def start_by_task(self, dag_id: str = DAG, *, trigger: str, **conf: Any) -> DagRun:
        """Start a run of a chain as a task does: users cannot choose the triggers of `domain/triggers.py`."""
        self._count += 1
        run_id = f"{trigger}__{time.time_ns()}_{self._count}"
        content = json.dumps({"mode": MODE, "cluster": "local", **conf})
        environ = Path(f"/proc/{self.stack.pids['scheduler']}/environ").read_text().split("\0")
        subprocess.run(
            [sys.executable, "-c", BY_TASK, dag_id, run_id, content],
            env=dict(one.split("=", 1) for one in environ if one),
            check=True,
            timeout=60,
        )
        return self.api.dag_run(dag_id, run_id)

    def now(self, run: DagRun) -> DagRun:
        return self.api.dag_run(run.dag_id, run.run_id)

    def ended(self, run: DagRun, seconds: float = RUN_S) -> DagRun:
        """The DAG run once it has ended."""
        wait_for(
            lambda: self.now(run).state.ended, what=f"the end of {run.dag_id}: {self.states(run)}", seconds=seconds
        )
        return self.now(run)

    def certify(self, dag_id: str = DAG, **conf: Any) -> tuple[DagRun, Run]:
        """Trigger a run, wait for its end; Airflow's view and ours."""
        run = self.ended(self.start(dag_id, **conf))
        return run, self.run_of(run)

    def run_of(self, run: DagRun) -> Run:
        """Our run that a DAG run is."""
        with self.site.store() as store:
            return store.runs.get(run.run)

    def tasks(self, run: DagRun) -> list[TaskInstance]:
        return self.api.task_instances(run.dag_id, run.run_id)

    def states(self, run: DagRun) -> dict[str, str]:
        """Task (with its node, when it is mapped) -> state."""
        found = {}
        for task in self.tasks(run):
            name = task.task_id.rpartition(".")[2]
            mapped = f"[{task.rendered_map_index or task.map_index}]" if task.map_index >= 0 else ""
            found[f"{name}{mapped}"] = task.state or ""
        return found

    def until(self, run: DagRun, when: Callable[[], bool], what: str, seconds: float = 90) -> None:
        """Wait for something that happens while a run continues."""
        wait_for(when, what=what, seconds=seconds, also=lambda: not self.now(run).state.ended)

    def log(self, run: DagRun, task: str, *, map_index: int = -1) -> str:
        """The log of a task's tries, as the UI shows it."""
        found = next(one for one in self.tasks(run) if one.task_id.endswith(task) and one.map_index == map_index)
        path = f"/api/v2/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances/{found.task_id}/logs/"
        text = ""
        for number in range(1, max(1, found.try_number) + 1):
            response = self.call("GET", f"{path}{number}", params={"map_index": map_index, "full_content": True})
            lines = response.json()["content"]
            text += "\n".join(line["event"] if isinstance(line, dict) else str(line) for line in lines)
        return text

    def clear(self, run: DagRun, *tasks: str, only_failed: bool = False) -> None:
        """Clear tasks of a run, as the UI does: they, and what comes after them, run again."""
        body: dict[str, Any] = {
            "dry_run": False,
            "dag_run_id": run.run_id,
            "only_failed": only_failed,
            "reset_dag_runs": True,
            "include_downstream": True,
        }
        if tasks:
            body["task_ids"] = list(tasks)
        self.call("POST", f"/api/v2/dags/{run.dag_id}/clearTaskInstances", json=body)

    def connect(self, connections: Mapping[str, Mapping[str, object]]) -> None:
        """Store connections in Airflow: id -> connection."""
        for key, one in connections.items():
            body = {**one, "connection_id": key, "extra": json.dumps(one["extra"])}
            action = {"action": "create", "entities": [body], "action_on_existence": "overwrite"}
            self.call("PATCH", "/api/v2/connections", json={"actions": [action]})

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        """One call with a login, for what the client has no method for; it must succeed."""
        for _ in range(TRIES_OF_500):
            response = self.request(method, path, **more)
            # SQLite was locked for longer than the api-server waits. The product's client repeats such a request.
            if response.status_code != 500:
                break
        assert response.is_success, response.text
        return response

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        """One call with a login, with any status."""
        login: Mapping[str, str] = {"username": self.stack.user, "password": self.stack.password}
        token = httpx.post(f"{self.stack.url}/auth/token", json=login, timeout=30).json()["access_token"]
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.request(method, f"{self.stack.url}{path}", headers=headers, timeout=60, **more)
