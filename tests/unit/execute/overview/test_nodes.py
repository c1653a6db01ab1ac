"""The overview of nodes, leased slots and the queue."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import a_run, open_store, record_run

from tipcflow.domain import Failure, FailureClass, Status
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run_documents import FailuresDocument
from tipcflow.execute.overview.nodes import load_nodes
from tipcflow.execute.overview.today import load_today
from tipcflow.report.overview.text import csv_of
from tipcflow.store import Store

HOUR = 3600.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "own.db") as store:
        yield store


def test_a_node_with_infrastructure_failures_comes_first(store: Store) -> None:
    now = store.now()
    record_run(store, a_run("r1", created_at=now - 2 * HOUR, nodes=("a", "b")))
    record_run(store, a_run("r2", created_at=now - HOUR, nodes=("b",)), status=Status.INFRA_FAILURE)
    record_run(store, a_run("old", created_at=now - 100 * HOUR, nodes=("c",)))
    overview = load_nodes(store, hours=24)
    assert [(row.node, row.runs) for row in overview.nodes] == [("b", 2), ("a", 1), ("c", 0)]
    assert overview.nodes[0].infrastructure is not None
    assert (overview.nodes[0].infrastructure.hits, overview.nodes[0].infrastructure.runs) == (1, 2)
    assert 0 < overview.nodes[0].busy < 1
    assert csv_of(overview).splitlines()[0] == "cluster,node,runs,busy,ended_runs,infra_failures,lost"
    assert csv_of(overview).splitlines()[1].startswith("local,b,2,")
    earlier = load_nodes(store, hours=24, until=now - 90 * HOUR)
    assert [row.node for row in earlier.nodes if row.lanes] == ["c"]


def test_equal_names_of_two_clusters_are_two_nodes(store: Store) -> None:
    now = store.now()
    record_run(store, a_run("r1", created_at=now - 2 * HOUR, nodes=("a", "b")))
    broken = record_run(
        store,
        a_run("r2", created_at=now - HOUR, nodes=("a",), cluster="other"),
        status=Status.INFRA_FAILURE,
    )
    lost = Failure(failure_class=FailureClass.NODE_LOST, node="a")
    store.documents.put(broken.id, FailuresDocument({AttemptKey("s", 1): lost}))
    overview = load_nodes(store)
    assert [(row.cluster, row.node, row.runs, row.lost) for row in overview.nodes] == [
        ("other", "a", 1, 1), ("local", "a", 1, 0), ("local", "b", 1, 0),
    ]  # fmt: skip
    rates = [row.infrastructure for row in overview.nodes]
    assert [(rate.hits, rate.runs) for rate in rates if rate] == [(1, 1), (0, 1), (0, 1)]
    assert overview.names == {("other", "a"): "other/a", ("local", "a"): "local/a", ("local", "b"): "b"}
    assert [(row.cluster, row.node) for row in load_nodes(store, cluster="other").nodes] == [("other", "a")]


def test_a_waiting_run_has_an_expected_start_and_end_on_both_pages(store: Store) -> None:
    now = store.now()
    for number in range(3):
        record_run(store, a_run(f"before{number}", created_at=now - (10 + number) * HOUR))
    holder = record_run(store, a_run("holder", created_at=now - 2), status=None)
    slots = [("10.0.0.1", 0), ("10.0.0.1", 1)]
    assert store.leases.acquire(holder.id, slots, owner="o", ttl_s=600) is not None
    store.runs.create(a_run("waits", created_at=now - 1))
    store.queue.join("waits", slots, owner="o", ttl_s=600)
    overview = load_nodes(store)
    assert [(slot.node, slot.slot, slot.run, slot.expired) for slot in overview.slots] == [
        ("10.0.0.1", 0, "holder", False), ("10.0.0.1", 1, "holder", False),
    ]  # fmt: skip
    (waiting,) = overview.queue
    assert (waiting.position, waiting.run, waiting.slots) == (1, "waits", {"10.0.0.1": 2})
    assert waiting.held_by == ("holder",)
    end = overview.slots[0].expected_end_at
    assert end is not None
    assert waiting.expected_start_at == max(end, overview.at)
    assert load_nodes(store, cluster="other").queue == ()
    running = {row.run: row for row in load_today(store).running}
    assert running["waits"].expected_start_at is not None
    assert running["waits"].expected_end_at is not None
    assert running["waits"].expected_end_at > running["waits"].expected_start_at
    assert running["holder"].expected_start_at is None
