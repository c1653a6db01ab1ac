"""The route for Prometheus: nothing without the token, and text that Prometheus' own parser reads."""

import json
from collections.abc import Iterator, Mapping

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from tests.support.stories import TRAIN, a_run, record_run, some_facts
from tests.unit.domain.alert.test_entry import alert, moved

from tipcflow.domain import Cluster, Failure, FailureClass, Node, Status
from tipcflow.domain.alert.entry import AlertEvent, AlertState, EventKind
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run_documents import ClusterDocument, FailuresDocument
from tipcflow.store import Store
from tipcflow_pages import metrics
from tipcflow_pages.web.errors import handlers

TOKEN = "token-of-prometheus"
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}


def of_node(name: str) -> tuple[tuple[str, str], ...]:
    """Labels of a node."""
    return ("cluster", "local"), ("node", name)


def set_token(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_TIPCFLOW_METRICS", json.dumps({"conn_type": "generic", "password": token}))
    metrics.forget_token()


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    set_token(monkeypatch, TOKEN)
    app = FastAPI(exception_handlers=handlers())
    app.add_route("/metrics", metrics.metrics, methods=["GET"])
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_export_the_numbers_of_the_database(client: TestClient, store: Store) -> None:
    now = store.now()
    record_run(store, a_run("20261121t000001-a-0000", created_at=now - 100, trigger="pr"))
    outliers = 'pr "x"\\\n'
    record_run(store, a_run("20261121t000002-a-0000", created_at=now - 60, trigger=outliers), status=Status.FAILED)
    store.runs.create(a_run("20261121t000003-a-0000", created_at=now))
    store.queue.join("20261121t000003-a-0000", [("node-a", 0)], owner="o", ttl_s=600, now=now - 40)
    slow = {"cluster": "local", "node": "node-a", "is_slow": True, "changes": [{"size": 0.1}, {"size": 0.25}]}
    drained = {"cluster": "lab", "node": "node-c"}
    store.node_histories.put("", 90.0, now, {"nodes": [slow], "drained": [drained]})
    store.nodes.save("20261121t000002-a-0000", some_facts("node-a", disk_free_bytes=1 << 30, clock_skew_s=-3.0))
    response = client.get("/metrics", headers=AUTHORIZED)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")
    assert response.headers["cache-control"] == "no-store"
    found = samples(response.text)
    assert found["tipcflow_runs", (("status", "pass"),)] == 1
    assert found["tipcflow_runs", (("status", "regression"),)] == 0
    assert found["tipcflow_runs_unfinished", ()] == 1
    assert found["tipcflow_last_verdict_timestamp_seconds", ()] == pytest.approx(now - 40, abs=1)
    assert found["tipcflow_queue_length", ()] == 1
    assert 40 <= found["tipcflow_queue_oldest_seconds", ()] < 100
    assert found["tipcflow_node_runs", (*of_node("node-a"), ("status", "failed"))] == 1
    assert found["tipcflow_node_lost_steps", of_node("node-b")] == 0
    assert found["tipcflow_verdict_latency_seconds", (("quantile", "0.95"), ("trigger", outliers))] == 20
    assert found["tipcflow_alerts", (("state", "invalid"),)] == 0
    assert found["tipcflow_window_days", ()] == 7
    assert found["tipcflow_ingest_lag_seconds", (("quantile", "0.5"),)] > 0
    assert found["tipcflow_node_slowdown_ratio", of_node("node-a")] == 0.25
    assert found["tipcflow_node_drained", (("cluster", "lab"), ("node", "node-c"))] == 1
    assert found["tipcflow_node_state_timestamp_seconds", of_node("node-a")] == pytest.approx(now - 60, abs=1)
    assert found["tipcflow_node_disk_free_bytes", of_node("node-a")] == 1 << 30
    assert found["tipcflow_node_clock_offset_seconds", of_node("node-a")] == -3.0
    assert found["tipcflow_node_missing_gpus", of_node("node-b")] == 0


def test_facts_that_a_node_did_not_report_are_not_exported(client: TestClient, store: Store) -> None:
    run = record_run(store, a_run(created_at=store.now()))
    store.nodes.save(run.id, some_facts("node-a", unfinished=("machine", "gpus")))
    found = samples(client.get("/metrics", headers=AUTHORIZED).text)
    for name in ("disk_free_bytes", "missing_gpus"):
        assert {dict(key[1])["node"] for key in found if key[0] == f"tipcflow_node_{name}"} == {"node-b"}
    assert ("tipcflow_node_clock_offset_seconds", of_node("node-a")) in found


def a_cluster(nodes: Mapping[str, str]) -> Cluster:
    """The cluster with nodes of these names and addresses."""
    made = (Node(name=name, address=at, python="/p", workspace="/w") for name, at in nodes.items())
    return Cluster(name="local", nodes=tuple(made))


def test_metrics_export_leases_lost_nodes_and_false_alerts(client: TestClient, store: Store) -> None:
    now = store.now()
    run = record_run(store, a_run("20261121t000001-a-0000", created_at=now - 100), status=Status.INFRA_FAILURE)
    lost = Failure(failure_class=FailureClass.NODE_LOST, node="node-b")
    store.documents.put(run.id, FailuresDocument({AttemptKey(TRAIN, number): lost for number in (1, 2)}))
    nodes = {"node-b": "10.0.0.2", "node-c": "10.0.0.3"}
    for number, node, slots, leased_at in ((2, "node-b", (0, 1), now), (3, "node-c", (0,), now - 900)):
        other = f"20261121t00000{number}-a-0000"
        store.runs.create(a_run(other, created_at=now - 50))
        store.documents.put(other, ClusterDocument(a_cluster(nodes)))
        held = [(nodes[node], slot) for slot in slots]
        store.leases.acquire(other, held, owner="o", ttl_s=600, now=leased_at)
    for number in (1, 2, 3):
        first = f"20261121t00000{number}-a-0000"
        draft = alert(moved("ips", 0.8), first=first, newest=first, first_at=now - number, newest_at=now - number)
        store.tracked_alerts.open(draft, "slow", at=now)
    for number in (1, 3):
        event = AlertEvent(alert=number, at=now, who="mia", kind=EventKind.STATE, text="invalid")
        store.tracked_alerts.change(event, state=AlertState.INVALID, state_at=now)
    found = samples(client.get("/metrics", headers=AUTHORIZED).text)
    by_node = {
        key: value for key, value in found.items() if key[0] in ("tipcflow_leases", "tipcflow_node_lost_steps")
    }
    assert by_node == {
        ("tipcflow_leases", (*of_node("node-b"), ("state", "held"))): 2,
        ("tipcflow_leases", (*of_node("node-c"), ("state", "expired"))): 1,
        ("tipcflow_node_lost_steps", of_node("node-a")): 0,
        ("tipcflow_node_lost_steps", of_node("node-b")): 2,
    }
    assert found["tipcflow_node_last_loss_timestamp_seconds", of_node("node-b")] > now - 1
    alerts = {dict(labels)["state"]: value for (name, labels), value in found.items() if name == "tipcflow_alerts"}
    assert {state for state, value in alerts.items() if value} == {"new", "invalid"}
    assert (alerts["new"], alerts["invalid"]) == (1, 2)


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, "Bearer é"],
)
def test_without_the_token_nothing_is_reported(client: TestClient, store: Store, header: str) -> None:
    record_run(store)
    response = client.get("/metrics", headers={b"Authorization": header.encode("latin-1")} if header else {})
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.headers["cache-control"] == "no-store"
    assert set(response.json()) == {"detail"}


@pytest.mark.parametrize("token", ["", None])
def test_without_a_configured_token_everything_is_refused(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch, token: str | None
) -> None:
    if token is None:
        monkeypatch.delenv("AIRFLOW_CONN_TIPCFLOW_METRICS")
        monkeypatch.setattr("tipcflow_operators.airflow.internals.Connection", NoConnections, raising=False)
        metrics.forget_token()
    else:
        set_token(monkeypatch, token)
    for header in ("Bearer ", "Bearer", "Bearer None"):
        assert client.get("/metrics", headers={"Authorization": header}).status_code == 401


class NoConnections:
    """Airflow's connections where the one of the metrics is missing: unit tests have no database of Airflow."""

    @staticmethod
    def get_connection_from_secrets(name: str) -> None:
        from airflow.sdk.exceptions import AirflowNotFoundException

        raise AirflowNotFoundException(name)


def test_a_new_token_is_in_force_when_the_connection_is_read_again(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_token(monkeypatch, "another")
    assert client.get("/metrics", headers=AUTHORIZED).status_code == 401
    assert client.get("/metrics", headers={"Authorization": "bearer another"}).status_code == 200


@pytest.mark.parametrize("days", ["0", "91", "-1", "x", "1.5", "", "٣", "000000009999999", "9" * 5000])
def test_invalid_number_of_days_is_refused(client: TestClient, store: Store, days: str) -> None:
    response = client.get("/metrics", params={"days": days}, headers=AUTHORIZED)
    assert response.status_code == 422
    assert response.json()["detail"].endswith("expected a whole number from 1 to 90")


def test_a_database_that_is_away_is_503(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", "postgresql://me:hunter2@/x?host=/nowhere")
    response = client.get("/metrics", headers=AUTHORIZED)
    assert response.status_code == 503
    assert "hunter2" not in response.text
