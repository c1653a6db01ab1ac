"""Numbers of a deployment: counted of the runs in the window, by the database's clock."""

import pytest
from tests.support.stories import TRAIN, a_plan, a_record, a_run, record_run
from tests.unit.domain.alert.test_entry import alert, moved

from tipcflow.domain import Failure, FailureClass, Status
from tipcflow.domain.alert.entry import AlertEvent, AlertState, EventKind
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run_documents import FailuresDocument
from tipcflow.report.overview.node_history import NodeChange, NodeHistory, NodeTrend
from tipcflow.store import Store
from tipcflow.store.queries.operation import OperationQueries

DAY = 24 * 3600.0


@pytest.fixture
def queries(store: Store) -> OperationQueries:
    return OperationQueries(store.database)


def test_empty_database_has_zero_numbers(queries: OperationQueries, store: Store) -> None:
    numbers = queries.numbers(DAY)
    assert (numbers.runs, numbers.unfinished, numbers.queued, numbers.oldest_queued_s) == ({}, 0, 0, 0.0)
    assert (numbers.leases, numbers.deliveries, numbers.oldest_delivery_s) == ({}, 0, 0.0)
    assert abs(numbers.at - store.now()) < 60


def test_runs_of_the_window_are_counted(queries: OperationQueries, store: Store) -> None:
    now = store.now()
    record_run(store, a_run("20261121t000001-a-0000", created_at=now - 100, trigger="pr"))
    record_run(store, a_run("20261121t000002-a-0000", created_at=now - 90, trigger="pr"), status=Status.FAILED)
    record_run(store, a_run("20261121t000003-a-0000", created_at=now - 80), status=None)
    record_run(store, a_run("20261101t000000-a-0000", created_at=now - 3 * DAY))
    numbers = queries.numbers(2 * DAY)
    assert numbers.runs == {"pass": 1, "failed": 1}
    assert numbers.unfinished == 1
    assert numbers.latencies == {"pr": [20.0, 20.0]}
    assert numbers.node_runs[("node-a", "failed")] == 1
    assert numbers.node_last["node-b"] == pytest.approx(now - 70)
    assert queries.numbers(4 * DAY).runs == {"pass": 2, "failed": 1}


def test_queue_and_leases(queries: OperationQueries, store: Store) -> None:
    now = store.now()
    for number, wait in ((1, 50.0), (2, 20.0), (3, 5000.0)):
        run = f"20261121t00000{number}-a-0000"
        store.runs.create(a_run(run, created_at=now - 100))
        ttl = 600.0 if number < 3 else 10.0  # the third has not renewed its request
        store.queue.join(run, [("node-a", 0)], owner="o", ttl_s=ttl, now=now - wait)
    store.runs.create(a_run("20261121t000004-a-0000"))
    store.leases.acquire("20261121t000004-a-0000", [("node-b", 0), ("node-b", 1)], owner="o", ttl_s=600)
    store.runs.create(a_run("20261121t000005-a-0000"))
    store.leases.acquire("20261121t000005-a-0000", [("node-c", 0)], owner="o", ttl_s=1, now=now - 50)
    numbers = queries.numbers(DAY)
    assert numbers.queued == 2
    assert 50 <= numbers.oldest_queued_s < 110
    assert numbers.leases == {("node-b", False): 2, ("node-c", True): 1}


def test_lost_nodes_are_counted_from_failures(queries: OperationQueries, store: Store) -> None:
    for number, kind in enumerate((FailureClass.NODE_LOST, FailureClass.HANG)):
        run = record_run(
            store, a_run(f"20261121t00000{number}-a-0000", created_at=store.now()), status=Status.INFRA_FAILURE
        )
        failure = Failure(failure_class=kind, node="node-b", log_line='the line names "node_lost"')
        store.documents.put(run.id, FailuresDocument({AttemptKey(TRAIN, 1): failure}))
    assert queries.numbers(DAY).node_lost == {"node-b": 1}


def test_alerts_of_the_window_are_counted_by_state(queries: OperationQueries, store: Store) -> None:
    now = store.now()
    for number, age in enumerate((10.0, 20.0, 3 * DAY), start=1):
        run = store_run(store, f"20261121t00000{number}-a-0000", now - age)
        draft = alert(moved("ips", 0.8), first=run, newest=run, first_at=now - age, newest_at=now - age)
        store.tracked_alerts.open(draft, "slow", at=now)
    event = AlertEvent(alert=2, at=now, who="mia", kind=EventKind.STATE, text="invalid")
    store.tracked_alerts.change(event, state=AlertState.INVALID, state_at=now)
    assert queries.numbers(DAY).alerts == {"new": 1, "invalid": 1}
    assert queries.numbers(4 * DAY).alerts == {"new": 2, "invalid": 1}


def store_run(store: Store, run: str, at: float) -> str:
    store.runs.create(a_run(run, created_at=at))
    return run


def test_waiting_deliveries_are_counted(queries: OperationQueries, store: Store) -> None:
    for name in ("one", "two"):
        common = {"connection": "c", "repository": "r", "event": "push", "body": {}}
        store.outbox.add(delivery=name, body_sha256=name, **common)  # type: ignore[arg-type]
    numbers = queries.numbers(DAY)
    assert numbers.deliveries == 2
    assert 0 <= numbers.oldest_delivery_s < 60


def test_lag_of_ingest_is_from_the_last_job_to_the_stored_results(queries: OperationQueries, store: Store) -> None:
    now = store.now()
    run = a_run("20261121t000001-a-0000", created_at=now - 100)
    store.runs.create(run, a_plan())
    for late, ends in ((3.0, [now - 50, now - 40]), (7.0, [now - 30]), (-5.0, [now - 20])):
        number = store.attempts.open(run.id, TRAIN, run.nodes, now - 90)
        records = [a_record(run.id, ended_at=end) for end in ends]
        store.attempts.close(run.id, TRAIN, number, Status.FAILED, "", records, max(ends) + late)
    number = store.attempts.open(run.id, TRAIN, run.nodes, now - 10)
    store.attempts.close(run.id, TRAIN, number, Status.INFRA_FAILURE, "no record", [], now)
    assert queries.numbers(DAY).ingest_lags == pytest.approx([0.0, 3.0, 7.0])
    assert queries.numbers(50.0).ingest_lags == []


def test_slowdown_of_nodes_is_that_of_the_last_report(queries: OperationQueries, store: Store) -> None:
    change = NodeChange(node="n1", source="cpu", size=0.25, since="r", since_at=1.0, runs=6)
    code = NodeChange(node="n2", source="chains", size=0.4, since="r", since_at=1.0, runs=6)
    nodes = (
        NodeTrend(node="n1", runs=9, changes=(change,), is_slow=True),
        NodeTrend(node="n2", runs=9, changes=(code,)),
        NodeTrend(node="n3", runs=9),
    )
    history = NodeHistory(at=2.0, days=90.0, nodes=nodes)
    store.node_histories.put("", 30.0, 1.0, history.model_copy(update={"nodes": ()}).model_dump(mode="json"))
    store.node_histories.put("", 90.0, 2.0, history.model_dump(mode="json"))
    store.node_histories.put("lab", 90.0, 3.0, {"nodes": []})
    assert queries.numbers(DAY).slowdowns == {"n1": 0.25, "n2": 0.0, "n3": 0.0}
