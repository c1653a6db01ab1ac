"""The tab of Airflow's pages of a DAG, a DAG run and a task."""

from datetime import UTC, datetime

import pytest
from fastapi.testclient import TestClient
from tests.support.stories import a_run, record_run

from tipcflow.domain import run_id_of, short_run_id_of
from tipcflow.store import Store

DAG, DAG_RUN = "sample.mobilenet_v3_small.train_infer_python", "manual__2026-11-21T09:30:05+00:00"
AFTER = datetime(2026, 11, 21, 9, 30, 5, 123456, tzinfo=UTC)


@pytest.fixture
def dag_runs(airflow_app: object) -> None:
    """DAG runs of a chain and of another DAG, in Airflow's own database."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.types import DagRunType

    with create_session() as session:
        for dag_id in (DAG, "weekly"):
            if not session.query(DagRun).filter_by(dag_id=dag_id, run_id=DAG_RUN).first():
                known = {"run_id": DAG_RUN, "run_type": DagRunType.MANUAL, "state": "queued"}
                session.add(DagRun(dag_id=dag_id, run_after=AFTER, **known))


def leads_to(browser: TestClient, path: str, **query: str) -> str:
    response = browser.get(f"/certification/airflow/{path}", params=query)
    assert response.status_code == 303, response.text
    return response.headers["location"].removeprefix("/certification")


def test_the_tabs_are_registered(machine: TestClient) -> None:
    plugins = machine.get("/api/v2/plugins").json()["plugins"]
    (ours,) = (plugin for plugin in plugins if plugin["name"] == "tipcflow")
    tabs = {view["destination"]: view for view in ours["external_views"]}
    assert set(tabs) == {"nav", "dag", "dag_run", "task_instance"}
    assert len({view["url_route"] for view in tabs.values()}) == len(tabs), "Airflow drops a repeated route"
    assert tabs["dag"]["href"] == "certification/airflow/dag?dag_id={DAG_ID}"
    assert tabs["dag_run"]["href"] == "certification/airflow/dag-run?dag_id={DAG_ID}&run_id={RUN_ID}"
    assert tabs["task_instance"]["href"] == f"{tabs['dag_run']['href']}&task={{TASK_ID}}"


def test_dag_runs_and_tasks_have_links_to_the_run(browser: TestClient, store: Store, dag_runs: None) -> None:
    run = record_run(store, a_run(run_id_of(DAG, DAG_RUN, AFTER)))
    assert leads_to(browser, "dag-run", dag_id=DAG, run_id=DAG_RUN) == f"/runs/{run.id}"
    assert leads_to(browser, "dag-run", dag_id=DAG, run_id=DAG_RUN, task="train") == f"/runs/{run.id}#steps"
    assert browser.get(f"/certification/runs/{run.id}").status_code == 200


def test_run_of_an_earlier_version_is_found(browser: TestClient, store: Store, dag_runs: None) -> None:
    run = record_run(store, a_run(short_run_id_of(DAG, DAG_RUN, AFTER)))
    assert leads_to(browser, "dag-run", dag_id=DAG, run_id=DAG_RUN) == f"/runs/{run.id}"


def test_short_id_of_a_client_names_one_run(machine: TestClient, store: Store, dag_runs: None) -> None:
    """Clients of earlier versions compute it."""
    run = record_run(store, a_run(run_id_of(DAG, DAG_RUN, AFTER)))
    short = f"/certification/api/runs/{short_run_id_of(DAG, DAG_RUN, AFTER)}"
    assert machine.get(short).json()["run"]["id"] == run.id
    assert machine.get(f"{short[:-8]}00000000").status_code == 404


def test_short_id_of_two_dag_runs_names_none(
    machine: TestClient, store: Store, dag_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user may have chosen the ID of the second one."""
    for dag_id in (DAG, "weekly"):
        record_run(store, a_run(run_id_of(dag_id, DAG_RUN, AFTER)))
    equal = "20261121t093005-x-00000000"
    monkeypatch.setattr("tipcflow_pages.data.dag_run.short_run_id_of", lambda *names: equal)
    assert machine.get(f"/certification/api/runs/{equal}").status_code == 404


def test_a_dag_leads_to_the_runs_of_its_chain(browser: TestClient, store: Store) -> None:
    chain = record_run(store, a_run()).chain
    path = leads_to(browser, "dag", dag_id=DAG)
    assert path == f"/runs?chain={chain.replace('/', '%2F')}"
    assert chain in browser.get(f"/certification{path}").text
    assert leads_to(browser, "dag", dag_id="weekly") == "/runs"


@pytest.mark.parametrize(
    ("path", "query", "reason"),
    [
        ("dag", {"dag_id": "a.b.c"}, "no run of DAG a.b.c yet"),
        ("dag-run", {"dag_id": DAG, "run_id": "other"}, f"DAG {DAG} has no DAG run other"),
        ("dag-run", {"dag_id": "weekly", "run_id": DAG_RUN}, "certifies no chain"),
    ],
)
def test_pages_without_a_run_report_the_reason(
    machine: TestClient, store: Store, dag_runs: None, path: str, query: dict[str, str], reason: str
) -> None:
    response = machine.get(f"/certification/airflow/{path}", params=query)
    assert response.status_code == 404
    assert reason in response.json()["detail"]


def test_a_login_is_required(anybody: TestClient, store: Store) -> None:
    assert anybody.get("/certification/airflow/dag", params={"dag_id": DAG}).status_code == 401
