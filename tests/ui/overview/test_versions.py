"""Versions and pull requests in Airflow's app."""

import csv
import io
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.support.stories import a_run
from tests.ui.html_text import Seen, read

from tipcflow.domain import Status
from tipcflow.store import Store
from tipcflow.store.github.attempts import PullAttempt, StartedChain

OLD, NEW = "paddle 3.4.0.dev1", "paddle 3.4.0.dev2"
COMMIT = "abcdef0123456789"


def put(store: Store, number: int, chain: str, framework: str, status: Status, **fields: Any) -> str:
    now = store.now() - 1000 + number
    known = {"chain": f"s/{chain}/train", "suite": "s", "framework": framework, "environment": "gpu/v100"}
    run = a_run(f"r{number:02}", status=status, created_at=now, ended_at=now + 1, **(known | fields))
    store.runs.create(run)
    return run.id


@pytest.fixture
def runs(store: Store) -> None:
    """On the new build one chain is broken, one fixed, one has not run yet."""
    put(store, 1, "a", OLD, Status.PASS)
    put(store, 2, "b", OLD, Status.FAILED, reason="KeyError: x")
    put(store, 3, "c", OLD, Status.PASS)
    put(store, 4, "a", NEW, Status.FAILED, reason="<b>loss is nan</b>", suite_commit=COMMIT)
    put(store, 5, "b", NEW, Status.PASS)
    put(store, 6, "a", NEW, Status.PASS, trigger="confirm")


def look(browser: TestClient, path: str, status: int = 200) -> Seen:
    response = browser.get(f"/certification/{path}")
    assert response.status_code == status, response.text
    seen = read(response.text)
    assert seen.problems == []
    return seen


def test_versions_page_lists_chains_broken_on_a_new_build(
    browser: TestClient, machine: TestClient, runs: None
) -> None:
    """A question of a user: base and new version over all chains."""
    query = "new=paddle+3.4.0.dev2&base=paddle+3.4.0.dev1"
    seen = look(browser, f"versions?{query}")
    assert f"1 of 2 chains pass on {NEW}; against {OLD}: 1 newly broken, 1 fixed, 1 not run yet." in seen.text
    assert "<b>loss is nan</b>" in seen.text
    links = seen.attributes("a", "href")
    assert "/certification/compare?run=r01&run=r04" in links
    (broken,) = [link for link in links if "kind=broken" in link]
    alone = look(browser, broken.split("/certification/")[1]).text
    assert "s/a/train" in alone
    assert "s/b/train" not in alone
    facts = machine.get(f"/certification/api/versions?{query}").json()
    assert [row["kind"] for row in facts["pairs"]] == ["broken", "fixed", "missing"]
    response = machine.get(f"/certification/api/versions?{query}&format=csv")
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert [(row["base_run"], row["new_run"]) for row in rows] == [("r01", "r04"), ("r02", "r05"), ("r03", "")]


def test_a_commit_and_the_newest_build_are_compared(browser: TestClient, runs: None) -> None:
    assert "0 of 1 chain passes on abcdef0" in look(browser, "versions?new=abcdef0").text
    assert f"1 of 2 chains pass on {NEW}." in look(browser, "versions").text
    assert "No chain matches the filters" in look(browser, "versions?chain=zz&page=3").text
    assert "no ended run of a chain tested this version" in look(browser, "versions?new=abcdef", 404).text
    assert "Invalid request" in look(browser, "versions?kind=x", 422).text


def test_a_pull_request_shows_its_chains_against_their_base(
    browser: TestClient, machine: TestClient, store: Store
) -> None:
    put(store, 1, "a", OLD, Status.PASS)
    put(store, 2, "a", OLD, Status.REGRESSION, reason="slower", trigger="pr")
    chains = (
        StartedChain(chain="s/a/train", run="r02", selected="<i>its params file changed", predicted_s=312.0),
        StartedChain(chain="s/z/train", problem="no such DAG", status="infra_failure"),
    )
    for head, number in (("1" * 40, 7), ("2" * 40, 0)):
        store.pulls.add(PullAttempt(repository="o/r", number=number, head_sha=head, attempt=1, chains=chains))
    seen = look(browser, "pulls")
    assert "o/r #7" in seen.text
    (own,) = {link for link in seen.attributes("a", "href") if "number=7" in link}
    seen = look(browser, own.split("/certification/")[1])
    assert "Pull request 7 of o/r" in seen.text
    assert "<i>its params file changed" in seen.text
    assert "no such DAG" in seen.text
    assert "predicted 5.2" in seen.text
    assert "/certification/compare?run=r01&run=r02" in seen.attributes("a", "href")
    assert "passed on r01" in seen.text
    response = machine.get("/certification/api/pulls?repository=o/r&number=7&format=csv")
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert [(row["chain"], row["status"], row["base"]) for row in rows] == [
        ("s/a/train", "regression", "r01"), ("s/z/train", "infra_failure", ""),
    ]  # fmt: skip
    assert [float(row["predicted_s"]) for row in rows] == [312.0, 0.0]


@pytest.mark.parametrize("page", ["versions", "pulls"])
def test_without_runs_and_without_a_login(
    browser: TestClient, anybody: TestClient, store: Store, page: str
) -> None:
    look(browser, page)
    assert anybody.get(f"/certification/{page}").status_code == 401
    assert anybody.get(f"/certification/api/{page}?new=x").status_code == 401
