"""The row of a run in Airflow belongs to one DAG run."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import a_run, open_store, record_run

from tipcflow.domain import ConfigError, Status
from tipcflow.domain.run_documents import AirflowDocument
from tipcflow.execute.request import RunRequest
from tipcflow.execute.run.opening import open_run
from tipcflow.store import Store

OWN = AirflowDocument(dag_id="certify", run_id="weekly__1")
OTHER = AirflowDocument(dag_id="certify", run_id="ci__lucky")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "own.db") as store:
        yield store


def request(**fields: str) -> RunRequest:
    known = {"params": "m/f.txt", "suite": "s", "mode": "lite_train_lite_infer", "cluster": "local"}
    return RunRequest(**{**known, "trigger": "weekly", **fields}, config_dir=Path("configs"))  # type: ignore[arg-type]


def test_cleared_run_is_reopened_by_its_dag_run(store: Store) -> None:
    assert open_run(store, "r", request(), dag_run=OWN)
    store.documents.change("r", AirflowDocument, stopped_by="ann")
    store.runs.finish("r", Status.CANCELLED, "stopped", 2.0)
    assert not open_run(store, "r", request(), dag_run=OWN)
    assert store.runs.get("r").status is None
    assert store.documents.get("r", AirflowDocument) == OWN, "no user has stopped it since"


def test_run_of_another_dag_run_is_refused_unchanged(store: Store) -> None:
    run = record_run(store, a_run("r"))
    store.documents.put("r", OWN)
    with pytest.raises(ConfigError) as caught:
        open_run(store, "r", request(), dag_run=OTHER)
    assert str(caught.value) == (
        "dag_run_id: run r belongs to another DAG run; found 'ci__lucky'; expected weekly__1 of certify\n"
        "  hint: start a DAG run with another ID"
    )
    assert store.runs.get("r") == run
    assert store.documents.get("r", AirflowDocument) == OWN


def test_announced_run_gets_the_fields_of_the_later_request(store: Store) -> None:
    """A run that hands over its leases makes the row of the next one, with its own mode and trigger."""
    store.runs.create(a_run("r", mode="lite_train_whole_infer", trigger="ci", status=None, ended_at=None))
    open_run(store, "r", request(), dag_run=OWN)
    run = store.runs.get("r")
    assert (run.mode, run.trigger, run.chain) == ("lite_train_lite_infer", "weekly", "s/m/f")


def test_run_with_attempts_keeps_its_fields(store: Store) -> None:
    """A run of an earlier version has attempts and no document."""
    run = record_run(store, a_run("r"))
    open_run(store, "r", request(), dag_run=OWN)
    assert store.runs.get("r").mode == run.mode
