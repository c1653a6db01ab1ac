"""Nodes, quarantines and A/B comparisons in Airflow's app: what they show, their URLs, JSON and CSV."""

import csv
import io

import pytest
from fastapi.testclient import TestClient
from tests.support.stories import a_run, record_run
from tests.support.two_nodes import record_slow_node
from tests.ui.html_text import Seen, read

from tipcflow.domain import Status
from tipcflow.domain.quarantine.entry import Quarantine
from tipcflow.domain.run.allocation_wait import AllocationWaitDocument, SlurmPlace
from tipcflow.domain.run.drains import Drain, DrainsDocument
from tipcflow.domain.run_documents import AbDocument
from tipcflow.store import Store

HOUR, DAY = 3600.0, 86_400.0
PAGES = ("nodes", "quarantines", "ab")


def look(browser: TestClient, path: str, status: int = 200) -> Seen:
    response = browser.get(f"/certification/{path}")
    assert response.status_code == status, response.text
    seen = read(response.text)
    assert seen.problems == []
    return seen


def rows_of(machine: TestClient, path: str) -> list[dict[str, str]]:
    response = machine.get(f"/certification/api/{path}")
    assert response.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(response.text)))


@pytest.mark.parametrize("page", PAGES)
def test_without_runs_and_without_a_login(
    browser: TestClient, anybody: TestClient, store: Store, page: str
) -> None:
    look(browser, page)
    assert anybody.get(f"/certification/{page}").status_code == 401
    assert anybody.get(f"/certification/api/{page}").status_code == 401


def test_page_lists_drained_nodes(browser: TestClient, machine: TestClient, store: Store) -> None:
    run = record_run(store, a_run("before", created_at=store.now() - HOUR))
    drain = Drain(cluster="gpu", node="gpu-1", at=store.now(), who="ann", why="loud <fan>")
    ended = Drain(cluster="cpu", node="cpu-1", at=1.0, who="tipcflow", why="slower", ended_at=2.0)
    store.documents.put(run.id, DrainsDocument({each.key: each for each in (drain, ended)}))
    seen = look(browser, "nodes").text
    assert all(word in seen for word in ("Drained nodes", "gpu-1", "ann", "loud <fan>"))
    assert "cpu-1" not in seen
    assert "Drained nodes" not in look(browser, "nodes?cluster=cpu").text
    (shown,) = machine.get("/certification/api/nodes").json()["drained"]
    assert (shown["cluster"], shown["node"], shown["who"]) == ("gpu", "gpu-1", "ann")


def test_expected_start_of_a_waiting_run_is_shown(browser: TestClient, machine: TestClient, store: Store) -> None:
    """A question of a user: the queue shows what a run waits for, and when it is expected to start."""
    now = store.now()
    record_run(store, a_run("before", created_at=now - 5 * HOUR))
    record_run(store, a_run("broken", created_at=now - 4 * HOUR, nodes=("<b>",)), status=Status.INFRA_FAILURE)
    record_run(store, a_run("holder", created_at=now - 2), status=None)
    store.leases.acquire("holder", [("10.0.0.1", 0)], owner="o", ttl_s=600)
    store.runs.create(a_run("waits", created_at=now - 1))
    store.queue.join("waits", [("10.0.0.1", 0)], owner="o", ttl_s=600)
    seen = look(browser, "nodes")
    assert "1 run waits for slots" in seen.text
    assert "1 × 10.0.0.1" in seen.text
    assert "unknown" not in seen.text
    links = seen.attributes("a", "href")
    for run in ("before", "holder", "waits"):
        assert f"/certification/runs/{run}" in links
    facts = machine.get("/certification/api/nodes").json()
    assert [row["node"] for row in facts["nodes"]] == ["<b>", "node-a", "node-b"]
    assert [row["node"] for row in rows_of(machine, "nodes?format=csv")] == ["<b>", "node-a", "node-b"]
    assert facts["queue"][0]["expected_start_at"] is not None
    assert "expected start" in look(browser, "today").text
    own = look(browser, "runs/waits").text
    assert "waiting" in own
    assert "Waits for slots: position 1 in the queue, expected start 2" in own
    listed = look(browser, "runs").text
    assert "waiting" in listed


def test_runs_in_the_queue_of_slurm_are_in_its_order(
    browser: TestClient, machine: TestClient, store: Store
) -> None:
    now = store.now()
    places = {
        "later": SlurmPlace(job="12", partition="gpu", position=10, pending=11, reason="Priority"),
        "sooner": SlurmPlace(
            job="11", partition="<gpu>", position=2, pending=2, reason="Resources", starts=1_795_688_194.0
        ),
        "submitted": None,
        "next": SlurmPlace(job="13", partition="gpu", position=9, pending=11),
        "ended": SlurmPlace(job="14", partition="gpu", position=1, pending=11),
    }
    for run, place in places.items():
        until = now - 1 if run == "ended" else now + 600
        store.runs.create(a_run(run, created_at=now - 60, cluster="hpc"))
        store.documents.put(run, AllocationWaitDocument(since=now - 30, until=until, place=place))
    seen = look(browser, "nodes?cluster=hpc")
    assert "4 runs wait for an allocation by Slurm" in seen.text
    assert "2 of 2" in seen.text
    assert "<gpu> 11 Resources" in seen.text
    assert "2026-11-26 10:16" in seen.text
    assert "10 of 11" in seen.text
    assert "No run waits" not in seen.text
    links = [link.rpartition("/")[2] for link in seen.attributes("a", "href") if "/runs/" in link]
    assert links == ["sooner", "next", "later", "submitted"]
    assert "Slurm" not in look(browser, "nodes?cluster=other").text
    listed = machine.get("/certification/api/nodes").json()["slurm"]
    assert [(row["run"], row["job"], row["position"]) for row in listed] == [
        ("sooner", "11", 2), ("next", "13", 9), ("later", "12", 10), ("submitted", "", 0),
    ]  # fmt: skip
    assert listed[0]["expected_start_at"] == 1_795_688_194.0
    assert "2026-11-26 10:16" in look(browser, "today").text


def test_the_period_of_nodes_is_in_the_url(browser: TestClient, machine: TestClient, store: Store) -> None:
    now = store.now()
    record_run(store, a_run("old", created_at=now - 40 * HOUR))
    assert "/certification/runs/old" not in look(browser, "nodes").attributes("a", "href")
    seen = look(browser, "nodes?hours=72&cluster=local&days=7")
    links = seen.attributes("a", "href")
    assert "/certification/runs/old" in links
    (earlier,) = [link for link in links if "until=" in link and "api" not in link]
    assert all(part in earlier for part in ("hours=72", "cluster=local", "days=7"))
    assert "later →" in look(browser, earlier.split("/certification/")[1]).text
    for query in ("nodes?until=tomorrow", "nodes?hours=0", "nodes?days=nan", "quarantines?show=none", "ab?days=0"):
        assert "Invalid request" in look(browser, query, 422).text


def test_slower_nodes_are_shown_on_request(browser: TestClient, machine: TestClient, store: Store) -> None:
    record_slow_node(store)
    seen = look(browser, "nodes")
    assert "probe cpu" not in seen.text
    (link,) = [link for link in seen.attributes("a", "href") if "history=90" in link]
    seen = look(browser, link.split("/certification/")[1])
    assert "2 nodes with runs in the last 90 days: 1 is slower than before (found at " in seen.text
    assert "b: slower" in seen.text
    assert "probe cpu +40.0 % slower since" in seen.text
    assert "proposed: drain b" in seen.text
    assert "/certification/runs/b-20" in seen.attributes("a", "href")
    facts = machine.get("/certification/api/node-history?days=90").json()
    assert [(trend["node"], trend["is_slow"]) for trend in facts["nodes"]] == [("b", True), ("a", False)]
    assert machine.get("/certification/api/node-history?days=0").status_code == 422


def test_many_bars_are_paths(browser: TestClient, store: Store) -> None:
    now = store.now()
    for number in range(160):
        record_run(store, a_run(f"r{number:03}", created_at=now - (number + 1) * 300))
    seen = look(browser, "nodes")
    assert not [link for link in seen.attributes("a", "href") if "/runs/r" in link]
    assert "Fewer runs have links" in seen.text


def test_quarantines_show_owner_check_and_expiry(browser: TestClient, machine: TestClient, store: Store) -> None:
    now = store.now()
    run = record_run(store, a_run("r1", created_at=now - DAY), status=Status.FAILED)
    known = {"chain": run.chain, "mode": run.mode, "environment": run.environment, "run": run.id}
    made = {"owner": "<i>mia", "who": "ann", "why": "issue 7", "failed": 2, "judged": 4, "created_at": now - HOUR}
    quarantine = Quarantine(check="parity.onednn", signature="differs", expires_at=now + DAY, **known, **made)
    stored = store.quarantines.add(quarantine, per_day=5)
    seen = look(browser, "quarantines")
    assert "1 active" in seen.text
    for text in ("<i>mia", "parity.onednn", "issue 7", "failed in 2 of 4 runs", f"0 of {quarantine.clean_runs}"):
        assert text in seen.text
    assert [row["owner"] for row in rows_of(machine, "quarantines?format=csv")] == ["<i>mia"]
    store.quarantines.release(stored.number, at=now, who="ann", why="fixed")
    assert "No active quarantine" in look(browser, "quarantines").text
    seen = look(browser, "quarantines?show=all&page=7")
    assert "released by ann: fixed" in seen.text


def test_page_lists_ab_comparisons(browser: TestClient, machine: TestClient, store: Store) -> None:
    now = store.now()
    run = record_run(store, a_run("a1", created_at=now - HOUR, trigger="ab"))
    metric = {
        "step": "train",
        "leg": "",
        "metric": "ips",
        "ratio": 0.95,
        "low": 0.93,
        "high": "inf",
        "outcome": "worse",
    }
    result = {"a": "<b>old", "b": "new", "status": "regression", "verdict": "B is slower", "pairs": [{}, {}]}
    store.documents.put(run.id, AbDocument({**result, "metrics": [metric]}))
    record_run(store, a_run("a2", created_at=now - 60, trigger="ab"), status=None)
    seen = look(browser, "ab")
    for text in ("B is slower", "<b>old", "-5.00 %", "2 pairs", "a2"):
        assert text in seen.text
    (row,) = rows_of(machine, "ab?format=csv")
    assert (row["metric"], row["outcome"], row["run"]) == ("ips", "worse", "a1")
