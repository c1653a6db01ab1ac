"""What every task of a run does when it opens its run."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support.stories import a_plan, a_run

from tipcflow.domain import Status
from tipcflow.execute.run import status_spool as spool
from tipcflow.store import Store
from tipcflow_operators.tasks.base import RunOperator


def test_a_task_stores_the_statuses_that_another_process_had_to_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/tipcflow.db"
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", url)
    killed = a_run().model_copy(update={"status": None, "ended_at": None})
    with Store.open(url) as store:
        store.runs.create(killed, a_plan())
    assert spool.keep(tmp_path, killed.id, Status.INFRA_FAILURE, "the disk was full")
    at = datetime(2026, 11, 22, tzinfo=UTC)
    dag_run = SimpleNamespace(dag_id="chain", run_id=f"manual__{at.isoformat()}", run_after=at)
    with RunOperator(task_id="judge").opened({"dag_run": dag_run}) as task:  # type: ignore[typeddict-item]
        found = task.store.runs.get(killed.id)
    assert (found.status, found.reason) == (Status.INFRA_FAILURE, "the disk was full")
    assert list((tmp_path / spool.FOLDER).iterdir()) == []
