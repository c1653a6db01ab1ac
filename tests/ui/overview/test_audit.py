"""The page Audit: decisions of the metrics database and actions of Airflow's audit log."""

import json
import math
import re
import time
from collections.abc import Iterator
from inspect import isfunction
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from tests.support.stories import TRAIN, a_run, record_run
from tests.ui.html_text import read

from tipcflow.domain import Run
from tipcflow.store import Baseline, Store
from tipcflow_pages.data.audit_log import ACTIONS, logged_actions


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


# Events of Airflow that are not about runs and DAGs, or that change nothing of them.
IGNORED = {
    # connections, variables, pools: in Airflow's own audit log
    *("bulk_connections", "create_default_connections", "delete_connection", "enqueue_connection_test"),
    *("patch_connection", "post_connection"),
    *("bulk_variables", "delete_variable", "patch_variable", "post_variable"),
    *("bulk_pools", "delete_pool", "patch_pool", "post_pool"),
    # assets and tasks that wait for a user: tipcflow's DAGs have none
    *("create_asset_event", "delete_asset_queued_events", "delete_dag_asset_queued_event"),
    *("delete_dag_asset_queued_events", "materialize_asset", "update_hitl_detail"),
    # for admins only, and not about the state of a run
    *("create_xcom_entry", "delete_xcom_entry", "update_xcom_entry", "reparse_dag_file"),
    # the user's own, or without a change
    *("favorite_dag", "unfavorite_dag", "generate_token", "get_task_instances_batch"),
}
# Requests about runs and tasks that Airflow does not log.
SILENT = {
    "bulk_task_instances",
    "clear_task_state_store",
    "create_backfill_dry_run",
    "delete_task_instance",
    "delete_task_state_store",
    "get_list_dag_runs_batch",
    "patch_task_group_instances_dry_run",
    "patch_task_instance_dry_run",
    "patch_task_state_store",
    "set_task_state_store",
}


def changing(app: FastAPI) -> Iterator[tuple[str, str, bool]]:
    """(event, path, whether Airflow logs it) of the routes of Airflow that are not GET."""
    for route in app.routes:
        if isinstance(route, APIRoute) and route.methods - {"GET", "HEAD"}:
            logs = [one.call.__qualname__ for one in route.dependant.dependencies if isfunction(one.call)]
            yield route.endpoint.__name__, route.path, "action_logging.<locals>.log_action" in logs


def test_every_event_of_airflow_is_listed_or_ignored(airflow_app: FastAPI) -> None:
    routes = list(changing(airflow_app))
    logged = {event for event, _, is_logged in routes if is_logged}
    own = {event for event in ACTIONS if event.startswith("tipcflow_")}
    assert logged == (ACTIONS.keys() - own) | IGNORED
    about_runs = re.compile(r"/(dags|backfills)\b")
    assert {event for event, path, is_logged in routes if not is_logged and about_runs.search(path)} == SILENT


def test_page_lists_decisions_and_actions(browser: TestClient, run: Run, logged: None) -> None:
    response = browser.get("/certification/audit")
    assert response.status_code == 200, response.text
    seen = read(response.text)
    assert seen.problems == []
    assert "bob stop run toy ci__1" in seen.text
    assert f"mia reset baseline {run.chain} 1 metric: <b>new</b> driver" in seen.text
    assert "running" not in seen.text


def test_page_lists_approvals_of_code_of_forks(browser: TestClient, store: Store) -> None:
    assert store.pulls.approve("o/r", 7, "a" * 40, "mia")
    seen = read(browser.get("/certification/audit").text)
    assert seen.problems == []
    assert f"mia approve code of fork o/r#7 commit {'a' * 40}" in seen.text
    assert "mia approve" not in read(browser.get("/certification/audit?user=bob").text).text


def test_facts_are_json_and_csv_of_one_user(machine: TestClient, run: Run, logged: None) -> None:
    facts = machine.get("/certification/api/audit").json()
    assert [(entry["who"], entry["action"]) for entry in facts["entries"]] == [
        ("bob", "stop run"),
        ("mia", "reset baseline"),
    ]
    text = machine.get("/certification/api/audit?user=bob&format=csv").text
    assert [line.split(",")[1:4] for line in text.splitlines()[1:]] == [["bob", "stop run", "toy ci__1"]]
    assert machine.get("/certification/api/audit?days=0").status_code == 422


BULK = {
    "actions": [
        {"action": "update", "entities": [{"dag_run_id": "one", "dag_id": "toy", "state": "failed"}]},
        {"action": "update", "entities": [{"dag_run_id": "two", "dag_id": "toy", "note": "a word"}]},
        {"action": "delete", "entities": ["three"]},
    ]
}
RUNS = [{"dag_run_id": "one", "dag_id": "toy"}, {"dag_run_id": "two", "dag_id": "toy"}]


@pytest.mark.parametrize(
    ("event", "names", "extra", "actions"),
    [
        ("patch_dag_run", {"run_id": "one"}, {"state": "failed"}, [("mark run failed", "toy one", "")]),
        ("patch_dag_run", {"run_id": "one"}, {"note": "a word"}, [("annotate run", "toy one", "")]),
        ("patch_dag_run", {"run_id": "one"}, {"state": "banana"}, [("annotate run", "toy one", "")]),
        ("patch_dag_run", {"run_id": "one"}, {"state": {"a": 1}}, [("annotate run", "toy one", "")]),
        (
            "bulk_dag_runs",
            {"dag_id": "~"},
            {**BULK, "actions": BULK["actions"][:2]},
            [("mark run failed", "toy one", ""), ("annotate run", "toy two", "")],
        ),
        ("bulk_dag_runs", {}, {"actions": BULK["actions"][2:]}, [("delete run", "toy three", "")]),
        (
            "clear_dag_runs",
            {"dag_id": "~"},
            {"dag_runs": RUNS, "dry_run": False},
            [("clear run", "toy one", ""), ("clear run", "toy two", "")],
        ),
        ("clear_dag_runs", {"dag_id": "~"}, {"dag_runs": RUNS}, []),
        ("clear_dag_runs", {}, {"partition_key": "a", "dry_run": False}, [("clear runs", "toy", "")]),
        (
            "patch_task_instance",
            {"run_id": "one", "task_id": "train"},
            {"new_state": "failed"},
            [("mark task", "toy one", "train failed")],
        ),
        (
            "patch_task_group_instances",
            {"run_id": "one"},
            {"group_id": "variant", "new_state": "failed"},
            [("mark tasks of a group", "toy one", "variant failed")],
        ),
        (
            "patch_dags",
            {"dag_id": None},
            {"dag_id_pattern": "toy%"},
            [("pause or unpause DAGs", "toy%", "")],
        ),
        ("cancel_backfill", {"dag_id": None}, {"backfill_id": "3"}, [("cancel backfill", "backfill 3", "")]),
    ],
)
def test_a_request_is_listed_with_its_actions(
    airflow_app: FastAPI,
    event: str,
    names: dict[str, str | None],
    extra: dict[str, Any],
    actions: list[tuple[str, str, str]],
) -> None:
    from airflow.models.log import Log
    from airflow.utils.session import create_session

    with create_session() as session:
        session.add(Log(event, owner="bob", extra=json.dumps(extra), **{"dag_id": "toy", **names}))
    try:
        found = logged_actions(time.time() - 60, "bob", 10)
    finally:
        with create_session() as session:
            session.query(Log).delete()
    assert [(entry.action, entry.about, entry.text) for entry in found] == actions
