"""The page of a chain."""

import csv
import io

import pytest
from fastapi.testclient import TestClient
from tests.support.precedents import put_run, weeks
from tests.support.stories import T0, TRAIN, a_run
from tests.ui.html_text import Seen, read

from tipcflow.domain import Status
from tipcflow.store import Baseline, Store

CHAIN = "sample/mobilenet_v3_small/train_infer_python"


@pytest.fixture
def runs(store: Store) -> None:
    """Twelve accepted runs, then one of each bad status; the framework changes at the eleventh."""
    weeks(store, 12)
    for number, status in enumerate(
        (Status.REGRESSION, Status.FAILED, Status.UNCONFIRMED, Status.INFRA_FAILURE), 12
    ):
        put_run(store, number, status=status, slower=1.7, framework="paddle 3.4.0")


def look(browser: TestClient, path: str = CHAIN, status: int = 200) -> Seen:
    response = browser.get(f"/certification/chains/{path}")
    assert response.status_code == status, response.text
    assert len(response.content) < 300 * 1024
    seen = read(response.text)
    assert seen.problems == []
    return seen


def test_every_main_metric_has_a_chart(browser: TestClient, runs: None) -> None:
    seen = look(browser)
    labels = [given["aria-label"] for tag, given in seen.tags if tag == "svg" and given.get("class") == "plot"]
    assert len(labels) == 5
    assert set(labels) == {
        "batch_cost over 16 runs",
        "inference_time cpu_onednn_off over 16 runs",
        "inference_time cpu_onednn_on over 16 runs",
        "eval.top1 over 16 runs",
        "peak_rss.rank0 over 16 runs",
    }
    assert "batch_cost" in seen.text.split("inference_time")[0]
    assert "+7" in seen.text
    assert "worse" in seen.text


def test_baseline_and_marks(browser: TestClient, runs: None, store: Store) -> None:
    known = {"chain": CHAIN, "mode": "lite_train_lite_infer", "step": TRAIN, "metric": "batch_cost", "unit": "s"}
    known |= {"environment": store.runs.get("run-00").environment, "who": "mei", "why": "a <b>new</b> kernel"}
    store.baselines.accept_one(Baseline(**known, value=0.19, pinned=True, run="run-03", accepted_at=T0))
    response = browser.get(f"/certification/chains/{CHAIN}").text
    seen = read(response)
    assert "pinned 0.19 s" in seen.text
    assert "pinned by mei: a &lt;b&gt;new&lt;/b&gt; kernel" in response
    assert len([given for tag, given in seen.tags if given.get("class") == "band" and "y" in given]) == 5
    shapes = [
        given["href"] for tag, given in seen.tags if tag == "use" and "x" in given and given["x"].endswith("%")
    ]
    for shape in ("regression", "failed", "unconfirmed", "other", "decided"):
        assert f"#mark-{shape}" in shapes
    lines = [given for tag, given in seen.tags if tag == "line" and given.get("class") == "framework"]
    assert len([given for given in lines if given["x1"].endswith("%")]) == 5


def test_every_mark_is_a_link_without_a_tab_stop(browser: TestClient, runs: None) -> None:
    links = [given for tag, given in look(browser).tags if tag == "a" and "tabindex" in given]
    assert {given["tabindex"] for given in links} == {"-1"}
    assert {given["href"].rsplit("/", 1)[1] for given in links} == {f"run-{number}" for number in (12, 13, 14, 15)}
    stops = [
        tag for tag, given in look(browser).tags if tag in ("a", "input", "button") and "tabindex" not in given
    ]
    assert len(stops) < 100


def test_link_to_all_metrics_shows_all_metrics(browser: TestClient, runs: None) -> None:
    (more,) = [link for link in look(browser).attributes("a", "href") if "every=true" in link]
    assert "loss over" in str(look(browser, more.partition("/chains/")[2]).tags)


def test_modes_and_environments_are_separate(browser: TestClient, runs: None, store: Store) -> None:
    put_run(store, 20, environment="gpu/v100 & more", slower=0.5)
    seen = look(browser)
    assert "last 1 run " in seen.text
    (other,) = [
        given["href"]
        for tag, given in seen.tags
        if given.get("class") == "count" and "environment=cpu" in given["href"]
    ]
    assert "last 16 runs" in look(browser, other.partition("/chains/")[2]).text


def test_chain_page_links_json_and_csv(browser: TestClient, machine: TestClient, runs: None) -> None:
    links = [link for link in look(browser).attributes("a", "href") if "/api/chains" in link]
    report = machine.get(links[0]).json()
    assert [run["id"] for run in report["runs"]] == [f"run-{number:02}" for number in range(16)]
    rows = list(csv.DictReader(io.StringIO(machine.get(links[1]).text)))
    (speed,) = [row for row in report["metrics"] if row["metric"] == "batch_cost"]
    assert [float(row["value"]) for row in rows if row["metric"] == "batch_cost"] == speed["values"]


def test_selected_runs_are_compared_oldest_first(browser: TestClient, runs: None) -> None:
    response = browser.get("/certification/compare?sort=started&run=run-15&run=run-02&run=run-07")
    assert response.status_code == 303
    assert response.headers["location"].endswith("/certification/compare?run=run-02&run=run-07&run=run-15")


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("nothing", 404, "no run of a chain with this name"),
        ("a/b/c/d", 404, "no run of a chain with this name"),
        (f"{CHAIN}?mode=x", 404, "no run of the chain in this mode and environment class"),
        (f"{CHAIN}?last=1", 422, "last"),
        (f"{CHAIN}?last=1000", 422, "last"),
    ],
)
def test_invalid_chain_url_shows_a_message(
    browser: TestClient, runs: None, path: str, status: int, message: str
) -> None:
    assert message in look(browser, path, status).text


@pytest.mark.parametrize("chain", ["s/a b/100%", "s/<b>&amp;/x", "s/ü/ä?x=1#y", "plain"])
def test_links_work_for_unusual_chain_names(browser: TestClient, store: Store, chain: str) -> None:
    store.runs.create(a_run("run-1", chain=chain))
    (link,) = [
        link for link in read(browser.get("/certification/").text).attributes("a", "href") if "/chains/" in link
    ]
    response = browser.get(link)
    assert response.status_code == 200
    seen = read(response.text)
    assert chain in seen.text
    assert "No run has a metric that the policy evaluates." in seen.text


def test_lists_and_run_page_link_to_the_chain(browser: TestClient, runs: None) -> None:
    for path in ("/", "/runs/run-11"):
        links = read(browser.get(f"/certification{path}").text).attributes("a", "href")
        assert [link for link in links if link.startswith(f"/certification/chains/{CHAIN}")]
