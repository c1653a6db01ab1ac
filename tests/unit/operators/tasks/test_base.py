"""What every task of a run does when it opens its run."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.exceptions import AirflowFailException
from tests.support.stories import a_plan, a_run

from tipcflow.domain import Status, run_id_of, short_run_id_of
from tipcflow.domain.run_documents import AirflowDocument
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


DAG_RUN = SimpleNamespace(dag_id="s.m.chain", run_id="weekly__1", run_after=datetime(2026, 12, 6, tzinfo=UTC))
OWN = AirflowDocument(dag_id=DAG_RUN.dag_id, run_id=DAG_RUN.run_id)
IDS = [name(OWN.dag_id, OWN.run_id, DAG_RUN.run_after) for name in (run_id_of, short_run_id_of)]


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", f"sqlite:///{tmp_path}/tipcflow.db")
    return f"sqlite:///{tmp_path}/tipcflow.db"


def opened_run() -> str:
    with RunOperator(task_id="judge").opened({"dag_run": DAG_RUN}) as task:  # type: ignore[typeddict-item]
        return task.run_id


def test_run_that_began_before_an_upgrade_keeps_its_id(database: str) -> None:
    now, before = IDS
    with Store.open(database) as store:
        assert opened_run() == now
        store.runs.create(a_run(before), a_plan())
        store.documents.put(before, AirflowDocument(dag_id=OWN.dag_id, run_id="ci__lucky"))
        assert opened_run() == now, "the run of another DAG run with an equal short hash"
        store.documents.put(before, OWN)
        assert opened_run() == before
        store.runs.create(a_run(now), a_plan())
        store.documents.put(now, OWN)
        assert opened_run() == now


def test_task_does_not_work_on_the_run_of_another_dag_run(database: str) -> None:
    with Store.open(database) as store:
        store.runs.create(a_run(IDS[0]), a_plan())
        store.documents.put(IDS[0], AirflowDocument(dag_id=OWN.dag_id, run_id="ci__lucky"))
    with pytest.raises(AirflowFailException, match="belongs to another DAG run; found 'weekly__1'"):
        opened_run()
