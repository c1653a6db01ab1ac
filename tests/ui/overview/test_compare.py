"""The page that compares runs."""

import csv
import io

import pytest
from fastapi.testclient import TestClient
from tests.support.precedents import put_run, weeks
from tests.support.stories import a_run
from tests.ui.html_text import Seen, read

from tipcflow.domain import Status
from tipcflow.store import Store

QUERY = "run=run-11&run=run-12"


@pytest.fixture
def slower(store: Store) -> None:
    weeks(store, 12)
    put_run(store, 12, status=Status.REGRESSION, slower=1.7, nodes=("node-a", "node-c"))


def look(browser: TestClient, query: str = "", status: int = 200) -> Seen:
    response = browser.get(f"/certification/compare?{query}")
    assert response.status_code == status, response.text
    assert len(response.content) < 300 * 1024
    seen = read(response.text)
    assert seen.problems == []
    return seen


def test_regressed_metrics_are_listed_first(browser: TestClient, slower: None) -> None:
    text = look(browser, QUERY).text
    assert "nodes node-a, node-b node-a, node-c" in text
    assert "framework paddle 3.4.0 paddle 3.3.1" in text
    (row,) = [line for line in text.splitlines() if line.startswith("batch_cost")]
    assert "worse (50.0 %)" in row
    assert "σ" in row
    assert "within the limit: show" in text
    assert "inference_time cpu_onednn_on" not in text
    assert "1 check has the same status in all runs" in text


def test_all_rows_are_shown_on_request(browser: TestClient, slower: None) -> None:
    seen = look(browser, f"{QUERY}&every=true")
    assert "inference_time" in seen.text
    assert "ran.steps" in seen.text
    assert f"?{QUERY}" in seen.attributes("a", "href")


def test_losses_are_drawn_without_a_script(browser: TestClient, slower: None) -> None:
    paths = [given["class"] for tag, given in look(browser, QUERY).tags if tag == "path"]
    assert paths == ["run-0", "run-1"]


def test_compare_page_links_json_and_csv(browser: TestClient, machine: TestClient, slower: None) -> None:
    links = [link for link in look(browser, QUERY).attributes("a", "href") if "/api/compare" in link]
    assert len(links) == 2
    report = machine.get(links[0]).json()
    assert [run["id"] for run in report["runs"]] == ["run-11", "run-12"]
    response = machine.get(links[1])
    assert response.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert [row["metric"] for row in rows] == [row["metric"] for row in report["metrics"]]
    assert report["metrics"][0]["metric"] == "batch_cost"


def test_compare_form_requests_two_or_three_runs(browser: TestClient, slower: None) -> None:
    for query in ("", "run=run-11", "run=run-11&run=&run="):
        seen = look(browser, query)
        assert "Enter two or three runs" in seen.text
    assert seen.attributes("input", "value") == ["run-11", "", ""]
    assert look(browser, "run=run-11&run=latest&run=").attributes("input", "value") == ["run-11", "run-12", ""]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("run=run-11&run=nothing", "no such run"),
        ("run=run-11&run=run-1", "3 runs have this prefix"),
        ("run=run-11&run=run-11", "a run cannot be compared with itself"),
        ("run=run-11&run=other", "runs of different chains cannot be compared"),
        ("run=run-08&run=run-09&run=run-10&run=run-11", "number of runs"),
        (f"{QUERY}&every=perhaps", "every"),
    ],
)
def test_incomparable_runs_show_a_message(
    browser: TestClient, store: Store, slower: None, query: str, message: str
) -> None:
    store.runs.create(a_run("other", chain="s/x/y"))
    assert message in look(browser, query, 422).text


def test_run_without_documents_is_compared(browser: TestClient, store: Store, slower: None) -> None:
    store.runs.create(a_run("nothing"))
    seen = look(browser, "run=run-11&run=nothing")
    assert "Still running: nothing." in seen.text
    assert "not planned" in seen.text


def test_run_page_links_to_the_comparison(browser: TestClient, slower: None, store: Store) -> None:
    put_run(store, 13)
    links = read(browser.get("/certification/runs/run-13").text).attributes("a", "href")
    assert [link for link in links if "/compare?" in link] == [
        "/certification/compare?run=run-11&run=run-13",
        "/certification/compare?run=run-12&run=run-13",
    ]


def test_text_of_runs_is_escaped(browser: TestClient, store: Store, slower: None) -> None:
    put_run(store, 14, framework="<script>alert(1)</script>")
    response = browser.get("/certification/compare?run=run-11&run=run-14")
    assert "<script>alert" not in response.text
    assert "&lt;script&gt;alert" in response.text
