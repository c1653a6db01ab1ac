"""Forms for decisions, with Airflow's permission check; the DAGs that store them are in Airflow's database."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.support.airflow.stored_dags import delete_runs, runs_of, store_dag
from tests.support.stories import T0, TRAIN, a_plan, a_run
from tests.ui.html_text import Seen, read

from tipcflow.config.access.roles import DECISION_DAGS
from tipcflow.domain import CheckResult, Run, Status
from tipcflow.execute.alerts.track import track_alerts
from tipcflow.execute.decide.decisions import read_decision
from tipcflow.store import Store

OWN = {"Origin": "http://testserver"}
CONFIGS = Path(__file__).parents[3] / "configs"
RED = CheckResult(
    check="speed.batch_cost", status=Status.REGRESSION, reason="slow", step=TRAIN, metric="batch_cost",
    values={"ratio": 1.25, "value": 0.2, "code": "worse"},
)  # fmt: skip


@pytest.fixture
def run(store: Store, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run with a failure, of which alert 1 reports."""
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(CONFIGS))
    made = a_run("run-red", environment="cpu")
    store.runs.create(made, a_plan())
    store.checks.replace(made.id, [RED])
    store.runs.finish(made.id, Status.REGRESSION, "", T0 + 60)
    found = store.runs.get(made.id)
    track_alerts(store, found, [RED])
    return found


@pytest.fixture(scope="session")
def dags(airflow_app: FastAPI) -> None:
    from tipcflow_operators.decide.dag import decide_dags

    for dag in decide_dags().values():
        store_dag(dag)


def client_of(app: FastAPI, role: str) -> TestClient:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    token = str(get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="mia", role=role)))
    return TestClient(
        app,
        headers={"Accept": "text/html"},
        cookies={"_token": token},
        raise_server_exceptions=False,
        follow_redirects=False,
    )


@pytest.fixture
def approver(airflow_app: FastAPI, home: Path, dags: None) -> Iterator[TestClient]:
    """A browser of a user who may decide: the role `op` of the simple auth manager."""
    yield client_of(airflow_app, "OP")
    for dag_id in DECISION_DAGS:
        delete_runs(dag_id)


@pytest.fixture
def operator(airflow_app: FastAPI, home: Path, dags: None) -> TestClient:
    """A browser of a user who decides about alerts only."""
    return client_of(airflow_app, "USER")


def look(client: TestClient, path: str, status: int = 200) -> Seen:
    response = client.get(f"/certification/{path}")
    assert response.status_code == status, response.text
    seen = read(response.text)
    assert seen.problems == []
    return seen


def forms_of(seen: Seen) -> set[str]:
    return {one.rpartition("/")[2] for one in seen.attributes("form", "action") if "/decide/" in one}


def test_pages_have_the_buttons_that_the_user_may_use(
    approver: TestClient, operator: TestClient, browser: TestClient, run: Run
) -> None:
    for client, on_run, on_alert in (
        (approver, {"decide_baseline"}, {"decide_alert"}),
        (operator, set(), {"decide_alert"}),
        (browser, set(), set()),
    ):
        seen = look(client, f"runs/{run.id}")
        assert forms_of(seen) == on_run
        links = [link for link in seen.attributes("a", "href") if "decide_quarantine" in link]
        assert bool(links) == bool(on_run)
        assert forms_of(look(client, "alerts/1")) == on_alert


def test_link_of_a_failure_fills_in_the_form(approver: TestClient, run: Run) -> None:
    (link,) = [
        one for one in look(approver, f"runs/{run.id}").attributes("a", "href") if "decide_quarantine" in one
    ]
    seen = look(approver, link.removeprefix("/certification/"))
    fields = {given["name"]: given.get("value") for tag, given in seen.tags if tag == "input" and "name" in given}
    assert (fields["run"], fields["check_name"], fields["metric"]) == (run.id, "speed.batch_cost", "batch_cost")
    labels = set(seen.attributes("label", "for"))
    named = {given["id"] for tag, given in seen.tags if tag in ("input", "select", "textarea") and "id" in given}
    assert named == labels


@pytest.mark.parametrize(
    ("dag_id", "sent", "conf"),
    [
        (
            "decide_alert",
            {"number": "1", "state": "acknowledged", "owner": " kernels ", "why": "", "group": "true"},
            {"number": 1, "state": "acknowledged", "owner": "kernels", "group": True},
        ),
        (
            "decide_quarantine",
            {"run": "run-red", "check_name": "speed.batch_cost", "owner": "kernels", "why": "known", "until": ""},
            {"run": "run-red", "check_name": "speed.batch_cost", "owner": "kernels", "why": "known"},
        ),
    ],
)
def test_form_starts_the_dag_with_valid_params(
    approver: TestClient, run: Run, store: Store, dag_id: str, sent: dict[str, str], conf: dict[str, Any]
) -> None:
    response = approver.post(f"/certification/decide/{dag_id}", data=sent, headers=OWN)
    assert response.status_code == 303, read(response.text).text
    ((_, given, user, state),) = runs_of(dag_id)
    assert (given, user, state) == (conf, "mia", "queued")
    seen = look(approver, response.headers["location"].removeprefix("/certification/"))
    assert "The decision is not stored yet: its DAG run is queued" in " ".join(seen.text.split())
    assert read_decision(dag_id, given).apply(store, "mia", CONFIGS)
    rows = approver.get("/certification/api/audit?user=mia").json()["entries"]
    assert ("submit decision", dag_id) in {(row["action"], row["about"].partition(" ")[0]) for row in rows}


def test_quarantine_is_released(approver: TestClient, run: Run, store: Store) -> None:
    given = {"run": run.id, "check_name": "speed.batch_cost", "owner": "kernels", "why": "known"}
    read_decision("decide_quarantine", given).apply(store, "mia", CONFIGS)
    assert forms_of(look(approver, "quarantines")) == {"decide_release"}
    sent = {"number": "1", "why": "fixed"}
    response = approver.post("/certification/decide/decide_release", data=sent, headers=OWN)
    assert response.status_code == 303
    assert [conf for _, conf, _, _ in runs_of("decide_release")] == [{"number": 1, "why": "fixed"}]


@pytest.mark.parametrize(
    ("dag_id", "sent", "words"),
    [
        ("decide_alert", {"number": "1", "state": ""}, "State: nothing is decided"),
        ("decide_alert", {"number": "1", "state": "fixed"}, "Reason or comment: is empty"),
        ("decide_alert", {"number": "x", "owner": "a"}, "Alert: invalid value; found 'x'"),
        (
            "decide_baseline",
            {"run": "run-red", "kind": "accept", "why": "ok", "metrics": "none"},
            "run run-red has no comparable value of none",
        ),
        (
            "decide_quarantine",
            {"run": "run-red", "check_name": "loss", "owner": "a", "why": "b"},
            "Check: run run-red",
        ),
        (
            "decide_quarantine",
            {"run": "run-red", "check_name": "speed.batch_cost", "owner": "a", "why": "b", "until": "soon"},
            "End (UTC): is not a date; found 'soon'",
        ),
        ("decide_release", {"number": "4", "why": "<b>x</b>"}, "Quarantine: no such quarantine; found '4'"),
    ],
)
def test_invalid_value_is_one_message_and_the_form_keeps_the_input(
    approver: TestClient, run: Run, dag_id: str, sent: dict[str, str], words: str
) -> None:
    response = approver.post(f"/certification/decide/{dag_id}", data=sent, headers=OWN)
    assert response.status_code == 422, read(response.text).text
    seen = read(response.text)
    assert seen.problems == []
    assert words in " ".join(seen.text.split())
    assert [given for tag, given in seen.tags if given.get("role") == "alert"]
    assert runs_of(dag_id) == []


def test_field_with_nul_is_one_message(approver: TestClient, run: Run) -> None:
    sent = {"number": "1", "why": "fixed\0"}
    response = approver.post("/certification/decide/decide_release", data=sent, headers=OWN)
    assert response.status_code == 422
    assert r"why: found 'fixed\x00', expected text without the character NUL" in read(response.text).text
    assert runs_of("decide_release") == []


def test_reader_is_refused_and_forms_of_other_sites_too(
    approver: TestClient, operator: TestClient, browser: TestClient, run: Run
) -> None:
    assert "requires the role approver" in look(operator, f"decide/decide_baseline?run={run.id}").text
    for client, dag_id in ((browser, "decide_alert"), (operator, "decide_baseline")):
        response = client.post(f"/certification/decide/{dag_id}", data={"number": "1"}, headers=OWN)
        assert response.status_code == 403
        assert "this decision requires the role" in read(response.text).text
    sent = {"number": "1", "owner": "a"}
    response = approver.post(
        "/certification/decide/decide_alert", data=sent, headers={"Origin": "https://evil.example.org"}
    )
    assert response.status_code == 403
    assert "sent by another site" in read(response.text).text
    assert runs_of("decide_alert") == []


@pytest.mark.parametrize(
    ("path", "words"),
    [("decide/nothing", "no such decision: nothing"), ("decide/decide_alert/none", "Airflow has no run none")],
)
def test_unknown_decision_is_not_found(approver: TestClient, store: Store, path: str, words: str) -> None:
    assert words in " ".join(look(approver, path, 404).text.split())
