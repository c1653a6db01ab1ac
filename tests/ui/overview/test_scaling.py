"""The page Scaling in Airflow's app."""

import csv
import io

from fastapi.testclient import TestClient
from tests.support.stories import a_run
from tests.ui.overview.test_fleet import look
from tests.unit.report.overview.test_scaling import a_series, a_topology

from tipcflow.domain import Status
from tipcflow.store import Store


def test_efficiency_of_each_topology_is_shown(browser: TestClient, machine: TestClient, store: Store) -> None:
    """A question of a user: speed-up from one to four devices, and since the last series."""
    now = store.now()
    for place, name in enumerate(("old", "<new>")):
        store.runs.create(a_run(name, created_at=now - 1000 + place))
        small = a_topology("1n1g", 1, 100.0 + place, run=name, status=Status.PASS, speedup=1.0, efficiency=1.0)
        large = a_topology("1n4g", 4, 360.0, run=name, status=Status.PASS, speedup=3.6, efficiency=0.9)
        store.documents.put(name, a_series(small, large, a_topology("4n8g", 0, None, reason="<b>no nodes")))
    seen = look(browser, "scaling")
    for text in ("3.60", "90.0 %", "+1.0 %", "<b>no nodes"):
        assert text in seen.text
    assert "/certification/runs/%3Cnew%3E" in seen.attributes("a", "href")
    facts = machine.get("/certification/api/scaling").json()
    assert [(series["run"], series["previous"]) for series in facts["series"]] == [("<new>", "old"), ("old", "")]
    response = machine.get("/certification/api/scaling?format=csv&chain=nothing")
    assert list(csv.DictReader(io.StringIO(response.text))) == []


def test_page_is_empty_without_series_and_requires_a_login(
    browser: TestClient, anybody: TestClient, store: Store
) -> None:
    assert "No scaling chain in the last 365 days." in look(browser, "scaling").text
    assert "No scaling chain matches" in look(browser, "scaling?chain=x").text
    assert anybody.get("/certification/scaling").status_code == 401
    assert anybody.get("/certification/api/scaling").status_code == 401
    look(browser, "scaling?days=0", 422)
