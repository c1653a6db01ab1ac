"""The pages Alerts and one alert: what they show, their filters, JSON and CSV."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.support.stories import T0, a_plan, a_run
from tests.ui.overview.test_overviews import look

from tipcflow.domain import CheckResult, Status
from tipcflow.domain.run.bisection import BisectionDocument
from tipcflow.domain.run.drains import DoubtfulDocument
from tipcflow.domain.run.notices import IssueRef, IssuesDocument
from tipcflow.execute.alerts.bisected import attach_bisection
from tipcflow.execute.alerts.decide import alerts_named, assign
from tipcflow.execute.alerts.track import track_alerts
from tipcflow.store import Store


@pytest.fixture
def alerts(home: Path) -> None:
    """A framework that slowed two chains; the reason quotes markup."""
    with Store.open(f"sqlite:///{home}/tipcflow.db") as store:
        for chain in ("sample/a/train", "sample/b/train"):
            for number, status in enumerate((Status.PASS, Status.REGRESSION)):
                run = a_run(
                    f"{chain[7]}-{number}", chain=chain, status=status, environment="cpu",
                    framework=f"paddle {number}", created_at=T0 + number, ended_at=T0 + number + 0.5,
                )  # fmt: skip
                store.runs.create(run, a_plan(chain=chain))
                result = CheckResult(
                    check="speed.ips", status=status, reason="<b>slow</b>", step="v/train", metric="ips",
                    values={"ratio": 0.75},
                )  # fmt: skip
                track_alerts(store, run, [result])
        assign(store, alerts_named(store, 1, group=False), "kernels", who="mia")


def test_alerts_are_grouped_by_cause(browser: TestClient, machine: TestClient, alerts: None) -> None:
    seen = look(browser, "alerts")
    assert "2 alerts of 2 chains with 1 cause: 2 new." in seen.text
    assert "ips -25.0 %" in seen.text
    links = seen.attributes("a", "href")
    assert {"/certification/alerts/1", "/certification/alerts/2", "/certification/compare?run=a-0&run=a-1"} <= {
        *links
    }
    facts = machine.get("/certification/api/alerts").json()
    assert [each["number"] for each in facts["groups"][0]["alerts"]] == [2, 1]
    assert "sample/b" not in look(browser, "alerts?owner=kernels").text.replace("\n", "")
    assert "No alerts." in look(browser, "alerts?state=fixed").text
    response = machine.get("/certification/api/alerts?format=csv&chain=b/")
    assert response.text.splitlines()[1].startswith("2,1,new,,sample/b/train,")


def test_alert_page_shows_the_alert_and_its_group(browser: TestClient, machine: TestClient, alerts: None) -> None:
    seen = look(browser, "alerts/1")
    assert "Alert 1: new" in seen.text
    assert "framework 0 -> 1" in seen.text
    assert "<b>slow</b>" in seen.text
    assert "tipcflow ab" in seen.text
    assert "/certification/alerts/2" in seen.attributes("a", "href")
    facts = machine.get("/certification/api/alerts/1").json()
    assert [event["kind"] for event in facts["events"]] == ["opened", "owner"]
    assert facts["alert"]["owner"] == "kernels"


@pytest.mark.parametrize("url", ["https://github.test/o/r/issues/7", "javascript:alert(1)"])
def test_alert_page_links_the_issue_of_its_cause(
    browser: TestClient, machine: TestClient, home: Path, alerts: None, url: str
) -> None:
    with Store.open(f"sqlite:///{home}/tipcflow.db") as store:
        store.documents.put("a-1", IssuesDocument({"o/r": IssueRef(number=7, url=url)}))
    seen = look(browser, "alerts/2")
    assert "Issue: o/r." in seen.text
    assert (url in seen.attributes("a", "href")) == url.startswith("https://")
    assert machine.get("/certification/api/alerts/2").json()["issues"] == {"o/r": url}


@pytest.mark.parametrize(("path", "status"), [("alerts/9", 404), ("alerts/x", 422), ("alerts?state=red", 422)])
def test_unknown_alert_is_an_error_page_and_an_api_error(
    browser: TestClient, alerts: None, path: str, status: int
) -> None:
    look(browser, path, status)
    assert browser.get(f"/certification/api/{path}").status_code == status


def test_the_page_of_a_run_links_its_alerts(browser: TestClient, alerts: None) -> None:
    seen = look(browser, "runs/a-1")
    assert "/certification/alerts/1" in seen.attributes("a", "href")
    assert "Alert 1: new, owner kernels" in seen.text
    assert "/certification/alerts/1" not in look(browser, "runs/a-0").attributes("a", "href")


def test_pages_show_the_result_of_a_bisection_and_doubtful_numbers(
    browser: TestClient, machine: TestClient, home: Path, alerts: None
) -> None:
    sentence = "97 %: 3f2c1e00 'Use <b>new</b> loader' (9 runs, 41 min)"
    with Store.open(f"sqlite:///{home}/tipcflow.db") as store:
        attach_bisection(store, "a-1", BisectionDocument(metric="batch_cost", sentence=sentence))
        store.documents.put("a-1", DoubtfulDocument(why="node b is slower than before"))
    for path in ("alerts/1", "alerts/2", "runs/a-1"):
        assert f"Bisection: {sentence}" in look(browser, path).text
    assert "doubtful: node b is slower than before" in look(browser, "runs/a-1").text
    assert machine.get("/certification/api/alerts/2").json()["bisection"]["sentence"] == sentence
