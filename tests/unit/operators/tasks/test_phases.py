"""What task `resolve` refuses before it plans, and how task `acquire` waits for Slurm."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred
from tests.support.stories import a_run, open_store

from tipcflow.domain import Cluster, ConfigError, Node, SlurmSource, SlurmStep
from tipcflow.domain.run.allocation_wait import AllocationWaitDocument
from tipcflow.execute.run import phases as run_phases
from tipcflow.store import Store
from tipcflow.store.queries.operation import OperationQueries
from tipcflow_operators.tasks import phases
from tipcflow_operators.tasks.phases import AcquireOperator, refuse_local_login

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


SLURM = Cluster(
    name="hpc",
    kind="slurm",
    slurm=SlurmSource(time_limit_minutes=30, workspace="/w"),
    nodes=(Node(name="slurm-1", address="slurm-1", python="/p", workspace="/w", slurm=SlurmStep()),),
)


@dataclass
class Waiting:
    """Stands for the context of a run that Slurm queues at first: there is no login node."""

    store: Store
    whys: list[str]
    run_id: str = "mine"
    cluster: Cluster = SLURM
    policy: None = None
    request: Any = field(default_factory=lambda: SimpleNamespace(waits_s=lambda policy: 600.0))

    def now(self) -> float:
        return self.store.now()

    def allocate(self) -> str:
        assert self.store.documents.get("mine", AllocationWaitDocument) is not None, "to be extended by the place"
        return self.whys.pop(0)

    def note(self, text: str) -> None:
        assert text == "waiting for Slurm job 1"


def test_wait_for_an_allocation_is_in_the_queue_and_in_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[tuple[str, float]] = []
    monkeypatch.setattr(phases, "trace_wait", lambda run, since, until: waits.append((run, until - since)))
    monkeypatch.setattr(run_phases, "prepare_nodes", lambda ctx: None)
    acquire = AcquireOperator(task_id="acquire")
    with open_store(tmp_path / "tipcflow.db") as store:
        store.runs.create(a_run("mine"))
        numbers = OperationQueries(store.database).numbers
        context: Any = Waiting(store, ["waiting for Slurm job 1", ""])
        since = store.now() - 90
        with pytest.raises(TaskDeferred):
            acquire._try(context, since=since)
        assert (numbers(60.0).queued, waits) == (1, [])
        assert 90 <= numbers(60.0).oldest_queued_s < 150
        acquire._try(context, since=since)
        assert numbers(60.0).queued == 0
    ((run, seconds),) = waits
    assert run == "mine"
    assert 90 <= seconds < 150
