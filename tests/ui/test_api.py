"""What machines read."""

from fastapi.testclient import TestClient
from tests.support.stories import INFER, TRAIN, record_run

from tipcflow.store import Store

API = "/certification/api/runs"


def test_a_run(machine: TestClient, store: Store) -> None:
    run = record_run(store)
    report = machine.get(f"{API}/{run.id}").json()
    assert report["run"]["status"] == "pass"
    assert [(step["id"], step["status"]) for step in report["steps"]] == [(TRAIN, "pass"), (INFER, "pass")]
    assert [leg["id"] for leg in report["legs"]] == ["cpu_onednn_on", "cpu_onednn_off"]
    assert report["certificate"] is None
    assert report["verdict_markdown"].startswith("## pass: ")


def test_no_such_run(machine: TestClient, store: Store) -> None:
    response = machine.get(f"{API}/nothing")
    assert (response.status_code, response.json()) == (404, {"detail": "no such run: nothing"})


def test_runs(machine: TestClient, store: Store) -> None:
    run = record_run(store)
    report = machine.get(API, params={"chain": run.chain, "limit": 5}).json()
    assert ([one["id"] for one in report["runs"]], report["total"]) == ([run.id], 1)
    assert machine.get(API, params={"chain": "other"}).json() == {"runs": [], "total": 0}
