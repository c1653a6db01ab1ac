"""The lists: golden as a user sees them; filters, pages and the messages of empty lists."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text
from tests.support.stories import T0, a_run, record_run
from tests.ui.html_text import Seen, read

from tipcflow.domain import Status
from tipcflow.store import Store

GOLDEN = Path(__file__).parents[1] / "golden" / "plugins"


def look(browser: TestClient, path: str, status: int = 200) -> Seen:
    response = browser.get(f"/certification{path}")
    assert response.status_code == status, response.text
    seen = read(response.text)
    assert seen.problems == []
    return seen


@pytest.fixture
def history(store: Store) -> None:
    """Two chains of two suites, with a history."""
    words = (Status.PASS, Status.FAILED, Status.REGRESSION, Status.PASS, Status.INFRA_FAILURE)
    for number, word in enumerate(words):
        chain = "sample/mobilenet_v3_small/train_infer_python" if number != 3 else "clas/ResNet50/train_infer"
        run = a_run(
            f"20261121t09300{number}-chain-000{number}",
            chain=chain,
            suite=chain.split("/")[0],
            created_at=T0 + 100 * number,
            suite_commit="" if number == 3 else f"{number}" * 40,
            suite_sha256="ab" * 32,
            framework="paddle 3.3.1",
        )
        store.runs.create(run)
        reason = "" if word is Status.PASS else f"node-b does not respond ({number})"
        store.runs.finish(run.id, word, reason, run.created_at + 90)


@pytest.mark.parametrize(("path", "name"), [("/", "chains"), ("/runs", "runs"), ("/runs?chain=none", "nothing")])
def test_list_pages_equal_golden_files(browser: TestClient, history: None, path: str, name: str) -> None:
    assert look(browser, path).text == (GOLDEN / f"list_{name}.txt").read_text(encoding="utf-8")


def test_the_strip_leads_to_each_run(browser: TestClient, history: None) -> None:
    strips = [given for tag, given in look(browser, "/").tags if tag == "a" and "dot" in given.get("class", "")]
    assert [given["class"].split("-", 1)[1] for given in strips] == [
        "pass", "failed", "regression", "infra_failure", "pass",
    ]  # fmt: skip
    assert strips[0]["href"].endswith("/certification/runs/20261121t093000-chain-0000")


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("status=failed", ["1"]),
        ("suite=clas", ["3"]),
        ("text=RESNET", ["3"]),
        ("text=node-b+respond&status=infra_failure", ["4"]),
        ("text=111111", ["1"]),
        ("status=running", []),
    ],
)
def test_run_list_applies_filters(browser: TestClient, history: None, query: str, ids: list[str]) -> None:
    links = look(browser, f"/runs?{query}").attributes("a", "href")
    assert [link[-1] for link in links if "/runs/2026" in link] == ids


def test_filters_stay_when_another_is_chosen(browser: TestClient, history: None) -> None:
    links = look(browser, "/runs?text=node-b&suite=sample").attributes("a", "href")
    (chosen,) = [link for link in links if "status=failed" in link]
    assert parse_qs(urlsplit(chosen).query) == {"text": ["node-b"], "suite": ["sample"], "status": ["failed"]}


def test_lists_are_divided_into_pages(browser: TestClient, store: Store) -> None:
    for number in range(120):
        run = a_run(f"r{number:03}", chain=f"s/m{number}/a", created_at=T0 + number)
        store.runs.create(run)
    for path in ("/", "/runs"):
        found: list[str] = []
        link = path
        while link:
            seen = look(browser, link)
            found += [one[-4:] for one in seen.attributes("a", "href") if "/runs/r" in one]
            following = [given["href"] for tag, given in seen.tags if given.get("rel") == "next"]
            link = following[0].removeprefix("/certification") if following else ""
        assert list(dict.fromkeys(found)) == [f"r{number:03}"[-4:] for number in reversed(range(120))]
    for path, last in (("/?page=99", "?page=4"), ("/runs?suite=sample&page=99", "runs?suite=sample&page=3")):
        response = browser.get(f"/certification{path}")
        assert (response.status_code, response.headers["location"]) == (303, f"/certification/{last}")


def test_chains_are_sorted_by_links_and_filters_keep_the_order(browser: TestClient, history: None) -> None:
    for order, first in (("", "sample/"), ("newest", "sample/"), ("chain", "clas/"), ("longest", "sample/")):
        seen = look(browser, f"/?order={order}" if order else "/")
        chains = [link for link in seen.attributes("a", "href") if "/chains/" in link]
        assert chains[0].startswith(f"/certification/chains/{first}")
        (marked,) = [given["aria-sort"] for tag, given in seen.tags if tag == "th" and "aria-sort" in given]
        assert marked == ("ascending" if order == "chain" else "descending")
    kept = [
        given for tag, given in look(browser, "/?order=chain&mode=lite_train_lite_infer").tags if tag == "input"
    ]
    assert {"name": "order", "value": "chain"}.items() <= next(x for x in kept if x["name"] == "order").items()


def test_more_filters_are_open_if_one_is_set(browser: TestClient, history: None) -> None:
    def details(query: str) -> bool:
        (found,) = [given for tag, given in look(browser, f"/{query}").tags if tag == "details"]
        return "open" in found

    assert not details("")
    assert details("?cluster=local")
    seen = look(browser, "/runs?cluster=elsewhere&since=2026-11-01&node=node-b")
    assert "No chain or run matches the filters." in seen.text
    assert {given.get("value") for tag, given in seen.tags if tag == "input"} >= {"2026-11-01", "node-b"}
    assert "5 runs" in look(browser, "/runs?since=2026-11-18&until=2026-11-18&build=paddle+3.3.1").text
    assert "No chain or run matches" in look(browser, "/runs?until=2026-11-17").text


@pytest.mark.parametrize(
    "query", ["since=yesterday", "status=nonsense", "page=0", "page=x", "page=9999999999999999999999"]
)
def test_invalid_queries_show_a_message(
    browser: TestClient, machine: TestClient, store: Store, query: str
) -> None:
    assert "Invalid request" in look(browser, f"/?{query}", 422).text
    assert machine.get(f"/certification/runs?{query}").status_code == 422
    assert machine.get("/certification/?order=fastest").status_code == 422


def test_nothing_was_run_yet(browser: TestClient, store: Store) -> None:
    for path in ("/", "/runs"):
        assert "No runs yet." in look(browser, path).text


def test_missing_database_is_503_with_a_hint(browser: TestClient, machine: TestClient, home: Path) -> None:
    for path in ("/", "/runs", "/runs/x", "/runs/x/tail?file=y"):
        assert "there is no metrics database yet" in look(browser, path, 503).text
    report = machine.get("/certification/api/runs").json()
    assert "there is no metrics database yet" in report["detail"]
    assert "tipcflow db upgrade" in report["hint"]


def test_database_of_another_revision_shows_a_message(browser: TestClient, store: Store) -> None:
    record_run(store)
    for revision, result in (("", "run `tipcflow db upgrade`"), ("9999", "install the tipcflow that migrated it")):
        with store.database.write() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = :to"), {"to": revision})
        assert result in look(browser, "/", 503).text


def test_the_settings_are_wrong(browser: TestClient, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", "mysql://user:hidden@host/db")
    seen = look(browser, "/", 503)
    assert "not a database URL" in seen.text
    assert "hidden" not in seen.text


def test_responses_have_security_headers(browser: TestClient, machine: TestClient, store: Store) -> None:
    run = record_run(store)
    for client, path in ((browser, "/"), (browser, f"/runs/{run.id}"), (machine, "/api/runs"), (browser, "/x")):
        headers = client.get(f"/certification{path}").headers
        if path != "/x":
            assert headers["cache-control"] == "no-store"
        if client is browser:
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'self'" in policy


def test_assets_are_served(browser: TestClient) -> None:
    for name in (
        "app.css",
        "app.js",
        "chart.js",
        "plot.js",
        "series.js",
        "icon.svg",
        "uPlot.iife.min.js",
        "uPlot.min.css",
    ):
        response = browser.get(f"/certification/assets/{name}")
        assert response.status_code == 200
        again = browser.get(f"/certification/assets/{name}", headers={"If-None-Match": response.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    for name in ("", "nothing.js", "..%2f..%2fapp.py", "%2e%2e/app.py", "app.py"):
        assert browser.get(f"/certification/assets/{name}").status_code == 404
