"""The DAG `maintenance`: its tasks are the sweeps, each with a real database."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import TimeRestriction
from tests.support.stories import a_run

from tipcflow.domain import Status
from tipcflow.domain.run_documents import AirflowDocument
from tipcflow.execute.sweeps.maintenance import Owner
from tipcflow.store import Store
from tipcflow_operators.airflow import dag_runs
from tipcflow_operators.maintenance.dag import maintenance_dag, sweeps


def test_dag_runs_every_hour_with_independent_tasks() -> None:
    dag = maintenance_dag()
    assert set(dag.task_ids) == set(sweeps())
    assert all(not task.upstream_task_ids and task.doc_md and task.execution_timeout for task in dag.tasks)
    assert (dag.is_paused_upon_creation, dag.max_active_runs, dag.catchup) == (False, 1, False)
    kept = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    first = kept.timetable.next_dagrun_info(
        last_automated_data_interval=None, restriction=TimeRestriction(None, None, catchup=False)
    )
    assert timedelta(0) < first.run_after - datetime.now(UTC) <= timedelta(hours=1)


def test_every_task_runs_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", "")
    monkeypatch.setattr(dag_runs, "state_of", lambda *_: "failed")
    monkeypatch.setattr(RuntimeTaskInstance, "get_ti_count", staticmethod(lambda **_: 0))
    run = a_run()
    with Store.open() as store:
        store.runs.create(run)
        store.documents.put(run.id, AirflowDocument(dag_id="d", run_id="r"))
    context: Any = {}
    result = {task.task_id: task.execute(context) for task in maintenance_dag().tasks}
    assert result == {
        "runs_without_status": "1 runs without a status: 1 got one, 0 are still running",
        "expired_leases": "0 leases expired: 0 were dropped",
        "node_folders": "0 nodes checked: folders of 0 runs removed, folders of 0 runs stay",
        "late_logs": "0 of 0 lost nodes responded: 0 samples of 0 runs fetched late",
        "leftovers": "0 nodes checked: leftovers of 0 runs ended; 0 expired requests dropped",
        "retention": "removed: 0 files of suite snapshots, progress of 0 runs; rolled up: 0 samples of 0 runs",
        "missed_deliveries": "0 deliveries of 0 Apps: 0 missed ones stored",
        "notices": "no teams in configs/teams: nothing is sent",
        "bisections": "no bisection is due",
        "slow_nodes": "0 clusters drain by themselves: 0 nodes drained",
        "node_histories": "0 nodes with runs in the last 90 days: none are slower than before",
    }
    with Store.open() as store:
        assert store.runs.get(run.id).status is Status.INFRA_FAILURE


@pytest.mark.parametrize(
    ("state", "busy", "owner"),
    [
        (None, 0, Owner.UNKNOWN),
        ("queued", 0, Owner.LIVING),
        ("running", 0, Owner.LIVING),
        ("failed", 1, Owner.LIVING),
        ("failed", 0, Owner.ENDED),
        ("success", 0, Owner.ENDED),
    ],
)
def test_active_controllers_continue_a_run(
    state: str | None, busy: int, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested = SimpleNamespace(states=[])

    def count(*, dag_id: str, run_ids: list[str], states: list[str]) -> int:
        assert (dag_id, run_ids) == ("d", ["r"])
        requested.states = states
        return busy

    monkeypatch.setattr(dag_runs, "state_of", lambda *_: state)
    monkeypatch.setattr(RuntimeTaskInstance, "get_ti_count", staticmethod(count))
    assert dag_runs.owner_of("d", "r") is owner
    if state == "failed":
        assert not set(requested.states) & {"success", "failed", "skipped", "upstream_failed", "removed"}
