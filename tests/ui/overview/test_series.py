"""The page Series: up to eight metrics over time."""

import csv
import io
import re

import pytest
from fastapi.testclient import TestClient
from tests.support.precedents import put_run, weeks
from tests.ui.html_text import Seen, read

from tipcflow.domain import Status
from tipcflow.store import Store

CHAIN = "sample/mobilenet_v3_small/train_infer_python"


@pytest.fixture
def runs(store: Store) -> None:
    weeks(store, 12)
    put_run(store, 12, status=Status.REGRESSION, slower=1.7)


def look(browser: TestClient, path: str, status: int = 200) -> Seen:
    response = browser.get(f"/certification/{path}")
    assert response.status_code == status, response.text
    assert len(response.content) < 300 * 1024
    seen = read(response.text)
    assert seen.problems == []
    return seen


def links(seen: Seen, start: str) -> list[str]:
    found = [link for link in seen.attributes("a", "href") if link.startswith(f"/certification/{start}")]
    return [link.removeprefix("/certification/") for link in found]


def test_since_when_is_a_chain_slower(browser: TestClient, machine: TestClient, runs: None) -> None:
    """A question of a user, by clicks: the chain's page, the series of a chart, a comparison."""
    first, second, *_ = links(look(browser, f"chains/{CHAIN}"), "series?")
    seen = look(browser, first)
    assert "1 line" in seen.text
    assert "batch_cost" in seen.text
    assert re.search(r"\+(6[5-9]|7[0-5])\.\d %", seen.text)
    (form,) = [given for tag, given in seen.tags if tag == "form" and given.get("action", "").endswith("compare")]
    assert form["method"] == "get"
    (to_csv,) = links(seen, "api/series?")[1:]
    rows = list(csv.DictReader(io.StringIO(machine.get(f"/certification/{to_csv}").text)))
    assert len(rows) == 13
    assert rows[-1]["status"] == "regression"
    (more, *_) = links(seen, "series?")
    both = look(browser, more)
    assert "2 lines" in both.text
    assert second


def test_the_state_is_in_the_url(browser: TestClient, runs: None) -> None:
    (first, *_) = links(look(browser, f"chains/{CHAIN}"), "series?")
    seen = look(browser, f"{first}&since=2020-01-01&until=2020-02-01&scale=percent&last=10")
    assert "No run of these lines has a value in this period" in seen.text
    added = links(seen, "series?")
    assert all("scale=percent" in link and "last=10" in link for link in added)
    for query in ("s=x", "since=now", "until=2026-13-01", "last=1", "scale=log"):
        assert "Invalid request" in look(browser, f"series?{query}", 422).text


def test_page_is_empty_without_lines_and_requires_a_login(
    browser: TestClient, anybody: TestClient, store: Store
) -> None:
    assert "No metrics selected" in look(browser, "series").text
    assert "no value" in look(browser, "series?s=a%7Cb%7Cc%7Cspec%7Cd%7C%7C%3Cb%3Eips").text
    assert anybody.get("/certification/series").status_code == 401
    assert anybody.get("/certification/api/series").status_code == 401
