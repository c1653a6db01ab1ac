"""The page Audit: decisions of the metrics database and actions of Airflow's audit log."""

import math
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.support.stories import TRAIN, a_run, record_run
from tests.ui.html_text import read

from tipcflow.domain import Run
from tipcflow.store import Baseline, Store


@pytest.fixture
def run(store: Store) -> Run:
    run = record_run(store, a_run(created_at=time.time() - 3600, environment="cpu"))
    known: dict[str, Any] = {
        "chain": run.chain,
        "mode": run.mode,
        "step": TRAIN,
        "environment": "cpu",
        "run": run.id,
    }
    decision = Baseline(
        **known, metric="ips", value=math.nan, who="mia", why="<b>new</b> driver", accepted_at=time.time() - 60
    )
    store.baselines.accept_one(decision)
    return run


@pytest.fixture
def logged(airflow_app: FastAPI) -> Iterator[None]:
    """Airflow's log of a user who has stopped a run, and of a task."""
    from airflow.models.log import Log
    from airflow.utils.session import create_session

    with create_session() as session:
        session.add(Log("tipcflow_stop", owner="bob", dag_id="toy", run_id="ci__1"))
        session.add(Log("running", owner="airflow", dag_id="toy", run_id="ci__1"))
    yield
    with create_session() as session:
        session.query(Log).delete()


def test_page_lists_decisions_and_actions(browser: TestClient, run: Run, logged: None) -> None:
    response = browser.get("/certification/audit")
    assert response.status_code == 200, response.text
    seen = read(response.text)
    assert seen.problems == []
    assert "bob stop run toy ci__1" in seen.text
    assert f"mia reset baseline {run.chain} 1 metric: <b>new</b> driver" in seen.text
    assert "running" not in seen.text


def test_facts_are_json_and_csv_of_one_user(machine: TestClient, run: Run, logged: None) -> None:
    facts = machine.get("/certification/api/audit").json()
    assert [(entry["who"], entry["action"]) for entry in facts["entries"]] == [
        ("bob", "stop run"),
        ("mia", "reset baseline"),
    ]
    text = machine.get("/certification/api/audit?user=bob&format=csv").text
    assert [line.split(",")[1:4] for line in text.splitlines()[1:]] == [["bob", "stop run", "toy ci__1"]]
    assert machine.get("/certification/api/audit?days=0").status_code == 422
