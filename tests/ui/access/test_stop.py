"""The button that stops a run, with Airflow's simple auth manager."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.support.stories import a_plan, a_run
from tests.ui.html_text import read

from tipcflow.domain import Run, run_id_of
from tipcflow.store import Store

OWN = {"Origin": "http://testserver"}


@pytest.fixture
def run(airflow_app: FastAPI, store: Store) -> Iterator[Run]:
    """A run without a status, and its DAG run, which `bob` has started."""
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    after = datetime.now(UTC).replace(microsecond=0)
    with create_session() as session:
        session.merge(DagBundleModel(name="dags"))
        session.flush()
        session.merge(DagModel(dag_id="toy", bundle_name="dags", fileloc="toy.py", is_stale=False))
        session.flush()
        dag_run = DagRun(
            dag_id="toy",
            run_id="ci__1",
            run_type=DagRunType.MANUAL,
            run_after=after,
            state="running",
            triggered_by=DagRunTriggeredByType.REST_API,
        )
        dag_run.triggering_user_name = "bob"
        session.add(dag_run)
    made = a_run(run_id_of("toy", "ci__1", after), created_at=time.time())
    store.runs.create(made, a_plan())
    yield made
    with create_session() as session:
        session.query(DagRun).filter(DagRun.dag_id == "toy").delete()
        session.query(DagModel).filter(DagModel.dag_id == "toy").delete()


@pytest.fixture
def operator(airflow_app: FastAPI, browser: TestClient) -> TestClient:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    token = str(get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="operator", role="USER")))
    browser.cookies.set("_token", token)
    return browser


def test_an_operator_sees_the_button(operator: TestClient, run: Run) -> None:
    seen = read(operator.get(f"/certification/runs/{run.id}").text)
    assert f"/certification/runs/{run.id}/stop" in seen.attributes("form", "action")


def test_a_reader_sees_no_button_and_is_refused(browser: TestClient, run: Run) -> None:
    seen = read(browser.get(f"/certification/runs/{run.id}").text)
    assert "Stop run" not in seen.text
    response = browser.post(f"/certification/runs/{run.id}/stop", headers=OWN)
    assert response.status_code == 403
    assert "stopping a run of bob requires the role operator" in read(response.text).text


def test_forms_of_other_sites_are_refused(operator: TestClient, run: Run) -> None:
    response = operator.post(f"/certification/runs/{run.id}/stop", headers={"Origin": "http://elsewhere"})
    assert response.status_code == 403
    assert "sent by another site" in response.text


def test_an_unknown_run_is_not_found(operator: TestClient, store: Store) -> None:
    assert operator.post("/certification/runs/nothing/stop", headers=OWN).status_code == 404
