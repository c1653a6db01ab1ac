"""The form that starts an A/B comparison, with Airflow's permission check; the DAG is in Airflow's database."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.support.airflow.stored_dags import delete_runs, runs_of, store_dag
from tests.support.airflow.world import FILE, DagWorld
from tests.support.stories import a_plan, a_run
from tests.ui.html_text import Seen, read

from tipcflow.domain import Run, Status
from tipcflow.execute.request import RequestDocument, RunRequest
from tipcflow.store import Store

OWN = {"Origin": "http://testserver"}


@pytest.fixture
def run(store: Store, home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run of the toy suite, whose configuration the pages read; tags v1 and v2 are its commits."""
    world = DagWorld(home, monkeypatch, ("first", "second"))
    world.git("tag", "v1", "HEAD~1")
    world.git("tag", "v2", "HEAD")
    chain = "toy/toy/train_infer_python"
    made = a_run("run-toy", chain=chain, suite="toy", suite_commit=world.commits[0], cluster="local")
    store.runs.create(made, a_plan(chain=chain, suite="toy", params_file=FILE))
    store.documents.put(made.id, RequestDocument(RunRequest(FILE, "toy", made.mode, "local", home / "configs")))
    store.runs.finish(made.id, Status.PASS, "", made.created_at + 60)
    return store.runs.get(made.id)


@pytest.fixture(scope="session")
def dag_ab(airflow_app: FastAPI, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The DAG `ab`, as Airflow's DAG processor stores it."""
    from tipcflow_operators.ab.dag import ab_dag

    configs = tmp_path_factory.mktemp("configs")
    for name in ("suites/toy.yaml", "clusters/local.yaml", "policies/pr.yaml"):
        (configs / name).parent.mkdir()
        (configs / name).touch()
    store_dag(ab_dag(configs))


@pytest.fixture
def operator(airflow_app: FastAPI, home: Path) -> TestClient:
    """A browser of a user who may start runs."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    token = str(get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="operator", role="USER")))
    return TestClient(
        airflow_app,
        headers={"Accept": "text/html"},
        cookies={"_token": token},
        raise_server_exceptions=False,
        follow_redirects=False,
    )


@pytest.fixture
def started(airflow_app: FastAPI) -> Iterator[None]:
    """Delete the runs of the DAG at the end."""
    yield
    delete_runs("ab")


def look(client: TestClient, path: str, status: int = 200) -> Seen:
    response = client.get(f"/certification/{path}")
    assert response.status_code == status, response.text
    seen = read(response.text)
    assert seen.problems == []
    return seen


def test_chain_and_run_page_have_the_button(browser: TestClient, run: Run) -> None:
    for path in (f"runs/{run.id}", f"chains/{run.chain}"):
        seen = look(browser, path)
        assert "Compare A/B" in seen.text
        assert "/certification/ab/new" in seen.attributes("form", "action")
    assert run.id in look(browser, f"runs/{run.id}").attributes("input", "value")


def test_form_has_the_commit_of_the_run_and_every_field_a_label(operator: TestClient, run: Run) -> None:
    seen = look(operator, f"ab/new?run={run.id}")
    fields = {given["name"]: given for tag, given in seen.tags if tag in ("input", "select") and "name" in given}
    assert fields["a"]["value"] == run.suite_commit
    labels = set(seen.attributes("label", "for"))
    assert {given["id"] for name, given in fields.items() if name != "run"} == labels
    assert "Start comparison" in seen.text


def test_viewer_sees_the_form_without_a_button(browser: TestClient, run: Run) -> None:
    seen = look(browser, f"ab/new?run={run.id}")
    assert "Start comparison" not in seen.text
    assert "requires permission to trigger the DAG ab" in seen.text
    response = browser.post("/certification/ab/new", data={"run": run.id, "a": "v1"}, headers=OWN)
    assert response.status_code == 403
    assert "requires permission to trigger the DAG ab" in read(response.text).text


def test_form_starts_the_dag_and_shows_its_state(
    operator: TestClient, run: Run, dag_ab: None, started: None
) -> None:
    data = {"run": run.id, "a": "v1", "b": "v2", "cluster": "local", "pairs": "5", "metric": "ips"}
    response = operator.post("/certification/ab/new", data=data, headers=OWN)
    assert response.status_code == 303, read(response.text).text
    ((run_id, conf, user, state),) = runs_of("ab")
    assert (user, state) == ("operator", "queued")
    assert conf == {
        "suite": "toy",
        "params_file": "test_tipc/configs/toy/train_infer_python.txt",
        "mode": "lite_train_lite_infer",
        "cluster": "local",
        "policy": "pr",
        "a": "v1",
        "b": "v2",
        "metric": ["ips"],
        "pairs": 5,
        "max_pairs": 20,
    }
    seen = look(operator, response.headers["location"].removeprefix("/certification/"))
    assert f"DAG run {run_id} is queued" in " ".join(seen.text.split())
    assert any(
        link.endswith(run_id.replace(":", "%3A").replace("+", "%2B")) for link in seen.attributes("a", "href")
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"a": "none"}, "Ref of A: the suite has no such ref; found 'none'"),
        ({"b": "v1"}, "Ref of A, Ref of B, Framework of A, Framework of B: A and B are the same version"),
        ({"framework_b": "paddlepaddle>=3"}, "Framework of B: does not name one release; found 'paddlepaddle>=3'"),
        ({"pairs": "many"}, "Pairs: is not a number of pairs; found 'many'; expected 0 to 9999"),
        ({"pairs": "3"}, "Pairs: is too small for an error of 0.02; found '3'; expected at least 4"),
        ({"max_pairs": "0"}, "Maximum pairs: is not a number of pairs"),
        ({"cluster": "/etc/passwd"}, "Cluster: unknown cluster; found '/etc/passwd'"),
        ({"metric": "ips data_num"}, "Metrics: neither a lower nor a higher value of this metric is better"),
    ],
)
def test_invalid_value_is_one_message_and_the_form_keeps_the_input(
    operator: TestClient, run: Run, dag_ab: None, started: None, given: dict[str, str], words: str
) -> None:
    data = {"run": run.id, "a": "v1", "b": "v2", "cluster": "local", **given}
    response = operator.post("/certification/ab/new", data=data, headers=OWN)
    assert response.status_code == 422
    seen = read(response.text)
    assert seen.problems == []
    assert words in seen.text
    assert [given for tag, given in seen.tags if given.get("role") == "alert"]
    (value,) = given.values()
    assert value in seen.attributes("input", "value") or "cluster" in given
    assert runs_of("ab") == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example.org"},
        {"Origin": "null"},
        {},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://testserver"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_form_of_another_site_is_refused(
    operator: TestClient, run: Run, dag_ab: None, headers: dict[str, str]
) -> None:
    response = operator.post("/certification/ab/new", data={"run": run.id, "a": "v1", "b": "v2"}, headers=headers)
    assert response.status_code == 403
    assert "sent by another site" in read(response.text).text
    assert runs_of("ab") == []


def test_field_with_nul_is_one_message(operator: TestClient, run: Run, dag_ab: None) -> None:
    response = operator.post("/certification/ab/new", data={"run": run.id, "a": "v\0"}, headers=OWN)
    assert response.status_code == 422
    assert r"a: invalid value; found 'v\x00'; expected text without the character NUL" in read(response.text).text
    assert runs_of("ab") == []


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("ab/new?run=nothing", 404, "no such run: nothing"),
        ("ab/new", 422, "run"),
        ("ab?started=nothing", 200, "Airflow has no run nothing of the DAG ab"),
    ],
)
def test_unknown_runs_are_reported(operator: TestClient, store: Store, path: str, status: int, words: str) -> None:
    assert words in " ".join(look(operator, path, status).text.split())


def test_run_without_a_plan_cannot_be_compared(operator: TestClient, store: Store) -> None:
    store.runs.create(a_run("run-1"))
    assert "run run-1 ended before it had a plan" in look(operator, "ab/new?run=run-1", 404).text
