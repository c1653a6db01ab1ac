"""The pages of all chains in Airflow's app: what they show, their URLs, JSON and CSV, and their size."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.support.stories import T0, a_run
from tests.ui.html_text import Seen, read

from devcluster.sample_history.fill import fill
from tipcflow.domain import Status
from tipcflow.store import Store

PAGES = ("today", "changes", "coverage", "flaky", "matrix")
LARGEST = 300 * 1024


def look(browser: TestClient, path: str, status: int = 200) -> Seen:
    response = browser.get(f"/certification/{path}")
    assert response.status_code == status, response.text
    assert len(response.content) < LARGEST
    seen = read(response.text)
    assert seen.problems == []
    return seen


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("history") / "tipcflow.db"
    fill(f"sqlite:///{path}", lambda line: None, weeks=6, chains=30)
    return path


@pytest.fixture
def history(home: Path, generated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generated history, in place of the home's database."""
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", f"sqlite:///{generated}")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_its_json_and_its_csv_show_the_same_chains(
    browser: TestClient, machine: TestClient, history: None, page: str
) -> None:
    seen = look(browser, page)
    assert "Generated runs: no node executed them" in seen.text
    facts = machine.get(f"/certification/api/{page}").json()
    listed = _listed(page, facts)
    assert listed
    response = machine.get(f"/certification/api/{page}?format=csv")
    assert response.headers["content-type"].startswith("text/csv")
    name = "model" if page == "matrix" else "chain"
    assert [row[name] for row in csv.DictReader(io.StringIO(response.text))] == listed
    for chain in listed[:20]:
        assert chain in seen.text.replace("\n", "")


@pytest.mark.parametrize("page", PAGES)
def test_pages_show_runs_with_a_path_in_their_chain(browser: TestClient, home: Path, page: str) -> None:
    chain = "/tmp/s.yaml/tiny/train_infer_python"
    with Store.open() as store:
        store.runs.create(
            a_run("r", chain=chain, suite="/tmp/s.yaml", status=Status.CONFIG_ERROR, ended_at=T0 + 9)
        )
    seen = look(browser, f"{page}?days=400" if page != "matrix" else page)
    assert (chain in seen.text.replace("\n", "")) == (page in ("today", "coverage", "matrix"))


def _listed(page: str, facts: Any) -> list[str]:
    """The chains, or the models of the cells, in the order of the JSON."""
    if page == "changes":
        return [row["chain"] for group in facts["groups"] for row in group["changes"]]
    if page == "matrix":
        return [row["model"] for row in facts["rows"] for column in facts["columns"] if column in row["cells"]]
    return [row["chain"] for row in facts["problems" if page == "today" else "chains"]]


def test_a_change_links_its_chain_its_runs_and_their_comparison(
    browser: TestClient, machine: TestClient, history: None
) -> None:
    change = machine.get("/certification/api/changes?direction=worse").json()["groups"][0]["changes"][0]
    seen = look(browser, "changes?direction=worse&days=7")
    links = seen.attributes("a", "href")
    assert f"/certification/runs/{change['first']}" in links
    assert f"/certification/compare?run={change['last_good']}&run={change['first']}" in links
    (to_chain, *_) = [link for link in links if link.startswith(f"/certification/chains/{change['chain']}")]
    look(browser, to_chain.split("/certification/")[1])
    assert "/certification/changes?direction=worse&days=90" in links
    assert "+11.0 %" in seen.text


def test_cells_that_do_not_pass_link_their_run(browser: TestClient, machine: TestClient, history: None) -> None:
    facts = machine.get("/certification/api/matrix").json()
    cells = [cell for row in facts["rows"] for cell in row["cells"].values()]
    links = look(browser, "matrix").attributes("a", "href")
    runs = [link.rpartition("/")[2] for link in links if link.startswith("/certification/runs/")]
    assert sorted(runs) == sorted(cell["run"] for cell in cells if cell["bad"])
    assert "/certification/matrix?problems=true" in links
    models = [row["model"] for row in machine.get("/certification/api/matrix?problems=true").json()["rows"]]
    assert set(models) == {row["model"] for row in facts["rows"] if row["bad"]}
    seen = look(browser, "matrix?by=variant&problems=true&page=9")
    assert "norm_train_gpus_0_autocast_null" in seen.text


def test_links_keep_the_state(browser: TestClient, history: None) -> None:
    links = look(browser, "today?suite=generated_clas&new_days=3").attributes("a", "href")
    (of_build, *_) = [link for link in links if "build=" in link]
    assert "suite=generated_clas" in of_build
    assert "new_days=3" in of_build
    assert "/certification/api/today?suite=generated_clas&new_days=3&format=csv" in links
    seen = look(browser, of_build.split("/certification/")[1])
    assert "only this build" in seen.text


def test_every_problem_links_its_runs(browser: TestClient, machine: TestClient, history: None) -> None:
    problem = machine.get("/certification/api/today").json()["problems"][0]
    links = look(browser, "today").attributes("a", "href")
    for run in (problem["run"], problem["first_bad"], problem["last_good"]):
        assert f"/certification/runs/{run}" in links


def test_gaps_filter_chains(browser: TestClient, history: None) -> None:
    seen = look(browser, "coverage?gap=legs+not+run")
    assert "ResNet18" not in seen.text
    assert "TensorRT is not installed on the node" in seen.text
    look(browser, "coverage?page=99")


@pytest.mark.parametrize(
    "query",
    [
        "today?days=x",
        "today?new_days=-1",
        "coverage?gap=nothing",
        "flaky?days=0",
        "flaky?days=nan",
        "changes?state=new",
        "changes?days=0",
        "matrix?by=node",
        "matrix?columns=31",
        "matrix?page=0",
    ],
)
def test_invalid_queries_show_a_message(browser: TestClient, history: None, query: str) -> None:
    assert "Invalid request" in look(browser, query, 422).text


@pytest.mark.parametrize("page", PAGES)
def test_without_runs_and_without_a_login(
    browser: TestClient, anybody: TestClient, store: Store, page: str
) -> None:
    assert "Generated runs" not in look(browser, page).text
    assert anybody.get(f"/certification/{page}").status_code == 401
    assert anybody.get(f"/certification/api/{page}").status_code == 401


def test_real_runs_are_not_called_generated_and_texts_are_escaped(browser: TestClient, store: Store) -> None:
    now = store.now()
    run = a_run(created_at=now - 60, status=Status.FAILED, ended_at=now, reason="<b>x</b>", framework="<i>")
    store.runs.create(run)
    store.runs.create(a_run("going", created_at=now - 30))
    seen = look(browser, "today")
    assert "Generated" not in seen.text
    assert "<b>x</b>" in seen.text
    assert "0 of 1 chain passes on <i>; 1 broken (new)." in seen.text
    assert "Running 1 run" in seen.text
