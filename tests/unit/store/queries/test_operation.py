"""Numbers of a deployment: counted of the runs in the window, by the database's clock."""

import pytest
from tests.support.stories import TRAIN, a_plan, a_record, a_run, record_run, some_facts
from tests.unit.domain.alert.test_entry import alert, moved

from tipcflow.domain import Cluster, Failure, FailureClass, Node, Status
from tipcflow.domain.alert.entry import AlertEvent, AlertState, EventKind
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run.allocation_wait import AllocationWaitDocument
from tipcflow.domain.run_documents import ClusterDocument, FailuresDocument
from tipcflow.report.overview.node_history import NodeChange, NodeHistory, NodeTrend
from tipcflow.store import Store
from tipcflow.store.queries.operation import NodeState, OperationQueries

DAY = 24 * 3600.0


@pytest.fixture
def queries(store: Store) -> OperationQueries:
    return OperationQueries(store.database)


def test_empty_database_has_zero_numbers(queries: OperationQueries, store: Store) -> None:
    numbers = queries.numbers(DAY)
    assert (numbers.runs, numbers.unfinished, numbers.queued, numbers.oldest_queued_s) == ({}, 0, 0, 0.0)
    assert (numbers.leases, numbers.deliveries, numbers.oldest_delivery_s) == ({}, 0, 0.0)
    assert (numbers.last_verdict, numbers.node_last_loss) == (0.0, {})
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
    assert numbers.node_runs["local", "node-a", "failed"] == 1
    assert numbers.node_last["local", "node-b"] == pytest.approx(now - 70)
    assert numbers.last_verdict == pytest.approx(now - 70, abs=1)
    assert queries.numbers(85.0).last_verdict == 0.0
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
    assert numbers.leases == {("local", "node-b", False): 2, ("local", "node-c", True): 1}


def test_runs_that_wait_for_an_allocation_are_queued(queries: OperationQueries, store: Store) -> None:
    now = store.now()
    times = ((now - 70, now + 600), (now - 9000, now - 10), (now - 300, now + 600))
    for number, (since, until) in enumerate(times):
        run = store_run(store, f"20261121t00000{number}-a-0000", now - 9000)
        store.documents.put(run, AllocationWaitDocument(since=since, until=until))
    store.runs.finish(run, Status.CANCELLED, "stopped in the queue", now)
    numbers = queries.numbers(DAY)
    assert numbers.queued == 1, "neither a controller that died nor a run that ended in the queue"
    assert 70 <= numbers.oldest_queued_s < 130


def a_cluster(name: str, **addresses: str) -> ClusterDocument:
    """A cluster with nodes of these names."""
    nodes = (Node(name=node, address=at, python="/p", workspace="/w") for node, at in addresses.items())
    return ClusterDocument(Cluster(name=name, nodes=tuple(nodes)))


def test_leases_are_counted_by_the_names_of_nodes(queries: OperationQueries, store: Store) -> None:
    lab = a_cluster("lab", a="10.0.0.1", b="10.0.0.2")
    for number, cluster, known, address in (
        (1, "lab", lab, "10.0.0.1"),
        (2, "lab", lab, "10.0.0.2"),
        (3, "lab", a_cluster("lab", a="10.0.0.1"), "10.0.0.3"),
        (4, "other", a_cluster("other", a="10.0.0.1"), "10.0.0.1"),
    ):
        run = f"20261121t00000{number}-a-0000"
        store.runs.create(a_run(run, cluster=cluster, created_at=store.now() + number))
        store.documents.put(run, known)
        store.leases.acquire(run, [(address, number)], owner="o", ttl_s=600)
    leases = queries.numbers(DAY).leases
    nodes = (("lab", "a"), ("lab", "b"), ("other", "a"), ("lab", "10.0.0.3"))
    assert leases == {(*node, False): 1 for node in nodes}


def test_lost_nodes_are_counted_from_failures(queries: OperationQueries, store: Store) -> None:
    for number, kind in enumerate((FailureClass.NODE_LOST, FailureClass.HANG)):
        run = record_run(
            store, a_run(f"20261121t00000{number}-a-0000", created_at=store.now()), status=Status.INFRA_FAILURE
        )
        failure = Failure(failure_class=kind, node="node-b", log_line='the line names "node_lost"')
        store.documents.put(run.id, FailuresDocument({AttemptKey(TRAIN, 1): failure}))
    assert queries.numbers(DAY).node_lost == {("local", "node-b"): 1}


def test_newest_loss_of_a_node_is_the_end_of_its_step(queries: OperationQueries, store: Store) -> None:
    now = store.now()
    run = "20261121t000001-a-0000"
    store.runs.create(a_run(run, created_at=now - 100), a_plan())
    lost = Failure(failure_class=FailureClass.NODE_LOST, node="node-b")
    for number, ended in ((1, now - 50), (2, now - 30)):
        assert store.attempts.open(run, TRAIN, ["node-b"], now - 90) == number
        store.documents.merge(run, FailuresDocument, {AttemptKey(TRAIN, number): lost})
        store.attempts.close(run, TRAIN, number, Status.INFRA_FAILURE, "", [], ended)
    assert queries.numbers(DAY).node_last_loss == {("local", "node-b"): pytest.approx(now - 30, abs=1)}
    before = lost.model_copy(update={"node": "node-a"})
    store.documents.merge(run, FailuresDocument, {FailuresDocument.BEFORE: before})
    losses = queries.numbers(DAY).node_last_loss
    assert losses["local", "node-b"] == pytest.approx(now - 30, abs=1), (
        "another failure of its run is no loss of node-b"
    )
    assert losses["local", "node-a"] >= now - 1
    assert queries.numbers(99.0).node_last_loss == {}


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
        NodeTrend(cluster="lab", node="n1", runs=9, changes=(change,), is_slow=True),
        NodeTrend(cluster="lab", node="n2", runs=9, changes=(code,)),
        NodeTrend(cluster="farm", node="n1", runs=9),
    )
    history = NodeHistory(at=2.0, days=90.0, nodes=nodes)
    store.node_histories.put("", 30.0, 1.0, history.model_copy(update={"nodes": ()}).model_dump(mode="json"))
    store.node_histories.put("", 90.0, 2.0, history.model_dump(mode="json"))
    store.node_histories.put("lab", 90.0, 3.0, {"nodes": []})
    assert queries.numbers(DAY).slowdowns == {("lab", "n1"): 0.25, ("lab", "n2"): 0.0, ("farm", "n1"): 0.0}


def a_report(store: Store, number: int, created_at: float, **facts: object) -> str:
    """A run of two slots on node a, which reports these facts; its first step has not begun."""
    run = f"20261121t00000{number}-a-0000"
    store.runs.create(a_run(run, created_at=created_at), a_plan())
    node = Node(name="a", address="10.0.0.1", python="/p", workspace="/w", device="gpu", slots=2)
    store.documents.put(run, ClusterDocument(Cluster(name="local", nodes=(node,))))
    store.nodes.save(run, some_facts("a", **facts))
    return run


def test_state_of_a_node_is_that_of_its_newest_run(queries: OperationQueries, store: Store) -> None:
    now = store.now()
    # The first one has waited for its slots.
    late = a_report(store, 1, now - 300, disk_free_bytes=4 << 30, clock_skew_s=-2.5, gpus=({"name": "H100"},))
    store.attempts.open(late, TRAIN, ["a"], now - 50)
    early = a_report(store, 2, now - 200, disk_free_bytes=9 << 30)
    store.attempts.open(early, TRAIN, ["a"], now - 190)
    state = NodeState(at=now - 50, disk_free_bytes=4 << 30, clock_offset_s=-2.5, missing_gpus=1)
    assert queries.numbers(DAY).node_states == {("local", "a"): state}
    store.runs.finish(a_report(store, 3, now - 250, disk_free_bytes=1), Status.INFRA_FAILURE, "disk", now - 10)
    ended = queries.numbers(DAY).node_states["local", "a"]
    assert (ended.at, ended.disk_free_bytes, ended.missing_gpus) == (now - 10, 1, 2)
    assert queries.numbers(230.0).node_states["local", "a"].at == now - 190


def test_equal_names_in_two_clusters_are_two_nodes(queries: OperationQueries, store: Store) -> None:
    now = store.now()
    for number, (place, status, disk) in enumerate(
        (("lab", Status.INFRA_FAILURE, 1 << 30), ("farm", Status.PASS, 500 << 30)), start=1
    ):
        created = now - 100 + number
        run = a_run(f"20261121t00000{number}-a-0000", created_at=created, cluster=place, nodes=("node-a",))
        record_run(store, run, status=status)
        store.nodes.save(run.id, some_facts("node-a", disk_free_bytes=disk))
        if place == "lab":
            lost = Failure(failure_class=FailureClass.NODE_LOST, node="node-a")
            store.documents.put(run.id, FailuresDocument({AttemptKey(TRAIN, 1): lost}))
    numbers = queries.numbers(DAY)
    lab, farm = ("lab", "node-a"), ("farm", "node-a")
    assert numbers.node_runs == {(*lab, "infra_failure"): 1, (*farm, "pass"): 1}
    assert numbers.node_last.keys() == {lab, farm}
    assert numbers.node_lost == {lab: 1}
    assert numbers.node_last_loss.keys() == {lab}
    disks = {node: numbers.node_states[node].disk_free_bytes for node in (lab, farm)}
    assert disks == {lab: 1 << 30, farm: 500 << 30}


def test_facts_that_a_node_did_not_report_in_time_are_unknown(queries: OperationQueries, store: Store) -> None:
    now = store.now()
    a_report(store, 1, now - 60, unfinished=("machine", "gpus"))
    assert queries.numbers(DAY).node_states == {("local", "a"): NodeState(at=now - 60)}


def test_node_with_slots_for_processes_misses_no_gpus(queries: OperationQueries, store: Store) -> None:
    run = record_run(store, a_run(created_at=store.now() - 60))
    store.documents.put(run.id, a_cluster("local", **{"node-a": "10.0.0.1"}))
    assert queries.numbers(DAY).node_states["local", "node-a"].missing_gpus == 0
