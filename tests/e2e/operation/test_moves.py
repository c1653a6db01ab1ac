"""A run in a real Airflow that moves, while it waits, to nodes that are free first."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.faults.airflow_case import AirflowCase
from tests.support.scheduler import Scheduler
from tests.support.stories import a_run

from tipcflow.domain import Status
from tipcflow.execute.resolve.moved import MovedDocument

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


@pytest.fixture
def case(scheduler: Scheduler, tmp_path: Path) -> Iterator[AirflowCase]:
    with ExitStack() as stack:
        yield AirflowCase(tmp_path, scheduler, stack)


def test_waiting_run_moves_to_nodes_that_are_free_first(case: AirflowCase) -> None:
    nodes = case.nodes_of_its_own(names=tuple("abcd")).cluster.nodes
    with case.site.store() as store:
        for name, held in (("long", nodes[:2]), ("short", nodes[2:])):
            store.runs.create(a_run(name, cluster="local", nodes=tuple(node.name for node in held)))
            slots = [(node.address, slot) for node in held for slot in range(node.slots)]
            assert store.leases.acquire(name, slots, owner="test", ttl_s=900)
            case.stack.callback(_end, case, name)
    running = case.begin()
    case.waits_for_slots(running)
    with case.site.store() as store:
        (place,) = store.queue.places()
        assert {node for node, _ in place.request.slots} == {node.address for node in nodes[:2]}
    _end(case, "short")
    case.finish(running)
    assert case.run is not None
    assert case.run.status is Status.PASS, running.output
    assert case.run.nodes == ("c", "d")
    with case.site.store() as store:
        losses = store.measurements.of(case.run.id, metric="loss")
        moved = store.documents.get(case.run.id, MovedDocument)
    assert {(loss.node, loss.rank) for loss in losses} == {("c", 0), ("c", 1), ("d", 2), ("d", 3)}
    assert moved == MovedDocument(planned=("a", "b"))
    assert {"prepare[c]", "prepare[d]", "train[c]", "train[d]"} <= set(case.scheduler.states(running.dag_run))
    assert "a, b: in use or reserved; the run uses c, d instead" in case.scheduler.log(running.dag_run, "acquire")


def _end(case: AirflowCase, run: str) -> None:
    with case.site.store() as store:
        store.leases.release(run)
        if store.runs.get(run).status is None:
            store.runs.finish(run, Status.PASS, "", store.now())
