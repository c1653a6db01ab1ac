"""Runs that used nodes in a period."""

from tests.support.stories import T0, a_run, record_run

from tipcflow.domain import Failure, FailureClass, Status
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run_documents import FailuresDocument
from tipcflow.store import Store


def test_only_runs_that_started_a_step_in_the_period(store: Store) -> None:
    first = record_run(store, a_run("r1", created_at=T0))
    record_run(store, a_run("r2", created_at=T0 + 5000, cluster="other"), status=None)
    store.runs.create(a_run("waits", created_at=T0 + 10))
    uses = store.node_use.runs(T0 - 100, T0 + 9000)
    assert [use.run for use in uses] == ["r1", "r2"]
    assert uses[0].nodes == first.nodes
    assert uses[0].status is Status.PASS
    assert (uses[1].status, uses[1].ended_at) == (None, None)
    assert [use.run for use in store.node_use.runs(T0 - 100, T0 + 9000, cluster="other")] == ["r2"]
    assert [use.run for use in store.node_use.runs(T0 + 4000, T0 + 9000)] == ["r2"]
    assert store.node_use.runs(T0 - 9000, T0 - 100) == []
    assert store.node_use.clusters() == ["local", "other"]


def test_lost_nodes_are_listed(store: Store) -> None:
    run = record_run(store, a_run("r1", created_at=T0), status=Status.INFRA_FAILURE)
    failure = Failure(failure_class=FailureClass.NODE_LOST, node="node-b")
    store.documents.put(run.id, FailuresDocument({AttemptKey("s", 1): failure}))
    assert store.node_use.lost(T0 - 1) == {"node-b": 1}
    assert store.node_use.lost(T0 + 1) == {}
