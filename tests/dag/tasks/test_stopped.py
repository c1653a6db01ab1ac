"""A run that a user stops is cancelled, a run whose task died is not: task states distinguish the two."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from tests.support.stories import INFER, TRAIN, a_plan, a_run

from tipcflow.airflow_api import Airflow
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.run_documents import PolicyDocument, ReferencesDocument, SuiteDocument
from tipcflow.config.suite import Suite
from tipcflow.domain import Status
from tipcflow.domain.run_documents import AirflowDocument, Document
from tipcflow.execute.request import RequestDocument, RunRequest
from tipcflow.execute.run import phases as task_phases
from tipcflow.execute.run.context import TaskContext
from tipcflow.store import Store
from tipcflow_operators.airflow import api
from tipcflow_operators.chain.dag import certify_dag
from tipcflow_operators.tasks import stopped
from tipcflow_operators.tasks.phases import CollectOperator

ROOT = Path(__file__).parents[3]
RUN = a_run().id
GROUP = "variant"
LATER = [f"{GROUP}.{kind}" for kind in ("train", "eval", "export", "infer_cpu", "infer_gpu")]
# What Airflow makes of a run whose `acquire` waits for slots, when a user marks the run as failed.
MARKED = {"resolve": "success", "acquire": "failed", "prepare": "skipped", **dict.fromkeys(LATER, "skipped")}
# The same when the worker of `acquire` died: tasks with `all_done` run, and the one without steps skips itself.
DIED = {
    **{"resolve": "success", "acquire": "failed", "prepare": "upstream_failed"},
    **dict.fromkeys(LATER, "upstream_failed"),
    **{f"{GROUP}.{kind}": "skipped" for kind in ("eval", "export", "infer_gpu")},
}
# The worker of the training died on one node; the task of a node without a part in it has skipped itself.
TRAIN_DIED = {**DIED, "acquire": "success", f"{GROUP}.train_0": "failed", f"{GROUP}.train_1": "skipped"}
del TRAIN_DIED[f"{GROUP}.train"]


@pytest.fixture
def task(tmp_path: Path) -> Iterator[TaskContext]:
    def connect(*_: Any) -> Any:
        raise AssertionError("no node is contacted")

    with Store.open(f"sqlite:///{tmp_path}/t.db") as store:
        yield TaskContext(RUN, store, tmp_path, connect, lambda _: None)


def planned(task: TaskContext) -> None:
    """What `resolve` leaves."""
    task.store.runs.create(a_run(), a_plan())
    suite = Suite(name="sample", folder=str(task.home), dialects=("d",))
    documents: list[Document] = [
        RequestDocument(RunRequest("f.txt", "sample", "lite_train_lite_infer", "local", task.home)),
        PolicyDocument(Policy(name="pr")),
        SuiteDocument(suite),
        ReferencesDocument(References(suite="sample")),
    ]
    for document in documents:
        task.store.documents.put(RUN, document)


def collected(task: TaskContext, states: dict[str, str]) -> None:
    """What `collect` makes of a run whose tasks have these states; the DAG run has no final state yet."""
    dag, context = started(states)
    collect = dag.get_task("collect")
    assert isinstance(collect, CollectOperator)
    collect.work(task, context)


def started(states: dict[str, str]) -> tuple[Any, Any]:
    """The DAG, and the context of a task in a DAG run that has no final state yet."""
    dag = certify_dag(ROOT / "configs")
    report = {"manual__1": {**states, "collect": "running"}}
    ti = SimpleNamespace(get_dagrun_state=lambda *_: "running", get_task_states=lambda **_: report)
    dag_run = SimpleNamespace(dag_id="certify", run_id="manual__1", run_type="manual", conf={}, run_after=None)
    return dag, {"dag": dag, "ti": ti, "dag_run": dag_run, "params": dag.params.dump()}


def finished(task: TaskContext, states: dict[str, str]) -> tuple[Status | None, str]:
    """The run's verdict."""
    collected(task, states)
    task_phases.release_run(task)
    task_phases.judge_run(task)
    kept = task_phases.finish_run(task)
    return kept.status, kept.reason


def test_a_waiting_run_that_a_user_marks_as_failed_is_cancelled(task: TaskContext) -> None:
    planned(task)
    assert finished(task, MARKED) == (Status.CANCELLED, f"stopped by a user in {TRAIN}")
    assert task.statuses() == {TRAIN: Status.CANCELLED, INFER: Status.CANCELLED}


@pytest.mark.parametrize("states", [DIED, TRAIN_DIED])
def test_a_run_whose_worker_died_is_an_infra_failure(task: TaskContext, states: dict[str, str]) -> None:
    planned(task)
    status, reason = finished(task, states)
    assert status is Status.INFRA_FAILURE
    assert "died without reporting" in reason


def test_a_run_that_a_user_marks_before_its_first_task_is_cancelled(task: TaskContext) -> None:
    states = dict.fromkeys(MARKED, "skipped")
    assert finished(task, states) == (Status.CANCELLED, "stopped by a user before its first task")
    assert task.store.runs.get(RUN).status is Status.CANCELLED


def test_a_run_whose_first_task_died_is_not_cancelled(task: TaskContext) -> None:
    collected(task, {**DIED, "resolve": "failed"})
    assert task.store.runs.known([RUN]) == {}


def test_steps_that_died_together_with_collect_are_not_counted_against_the_model(task: TaskContext) -> None:
    planned(task)
    assert task_phases.collect_if_missing(task, stopped=lambda: False)
    assert not task_phases.collect_if_missing(task, stopped=lambda: False)
    task_phases.judge_run(task)
    kept = task_phases.finish_run(task)
    assert (kept.status, "died without reporting" in kept.reason) == (Status.INFRA_FAILURE, True)


def test_a_stopped_run_is_cancelled_although_its_user_cannot_be_read(
    task: TaskContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing listens at the address of the connection; a name of an earlier stop is removed."""
    planned(task)
    task.store.documents.put(RUN, AirflowDocument(dag_id="certify", run_id="manual__1", stopped_by="mia"))
    connection = {"conn_type": "http", "host": "127.0.0.1", "port": 9, "login": "a", "password": "b"}
    monkeypatch.setenv(f"AIRFLOW_CONN_{api.CONNECTION.upper()}", json.dumps(connection))
    monkeypatch.setattr(stopped, "_LOOKUP_S", 0.5)
    assert finished(task, MARKED) == (Status.CANCELLED, f"stopped by a user in {TRAIN}")


@pytest.mark.parametrize(
    ("is_planned", "where"), [(True, f"in {TRAIN}"), (False, "before its first task")], ids=["planned", "queued"]
)
def test_a_stopped_run_names_its_user(
    task: TaskContext, monkeypatch: pytest.MonkeyPatch, is_planned: bool, where: str
) -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        entry = {"who": "mia", "action": "mark run failed", "about": "certify manual__1"}
        return httpx.Response(200, json={"access_token": "t", "entries": [entry]})

    def client() -> Airflow:
        return Airflow("http://airflow.test", user="a", password="b", transport=httpx.MockTransport(respond))

    monkeypatch.setattr(api, "api", client)
    if is_planned:
        planned(task)
        task.store.documents.put(RUN, AirflowDocument(dag_id="certify", run_id="manual__1"))
    states = MARKED if is_planned else dict.fromkeys(MARKED, "skipped")
    assert finished(task, states) == (Status.CANCELLED, f"stopped by user mia {where}")
