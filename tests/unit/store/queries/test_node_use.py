"""Runs that used nodes in a period."""

import pytest
from tests.support.stories import T0, a_run, losses, record_run

from tipcflow.domain import CheckResult, Failure, FailureClass, Phase, Status
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run_documents import FailuresDocument
from tipcflow.store import Store
from tipcflow.store.queries.node_use import Ratio


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
    other = record_run(store, a_run("r2", created_at=T0, cluster="other"), status=Status.INFRA_FAILURE)
    store.documents.put(other.id, FailuresDocument({AttemptKey("s", 1): failure, AttemptKey("t", 1): failure}))
    assert store.node_use.lost(T0 - 1) == {("local", "node-b"): 1, ("other", "node-b"): 2}
    assert store.node_use.lost(T0 + 1) == {}


def test_probes_are_averaged_per_run_and_node(store: Store) -> None:
    for number, run in enumerate(("r1", "r2")):
        record_run(store, a_run(run, created_at=T0 + number))
        for node, value in (("node-a", 0.1), ("node-b", 0.2)):
            timed = {"node": node, "rank": -1, "phase": Phase.RESOURCE, "unit": "s"}
            store.measurements.add(losses(run, [value, value + 0.1], metric="probe.cpu", **timed))
    values = {(each.run, each.node, each.metric): each.value for each in store.node_use.probes(T0)}
    assert values == {
        (run, node, "probe.cpu"): pytest.approx(value)
        for run in ("r1", "r2")
        for node, value in (("node-a", 0.15), ("node-b", 0.25))
    }
    assert [each.run for each in store.node_use.probes(T0 + 1)] == ["r2", "r2"]
    assert store.node_use.probes(T0, cluster="other") == []


def test_ratios_belong_to_metrics_with_a_baseline(store: Store) -> None:
    record_run(store, a_run("r1", created_at=T0))
    known = {"status": Status.PASS, "reason": ""}
    results = [
        CheckResult(check="speed.ips", step="s", metric="ips", values={"ratio": 0.8}, **known),
        CheckResult(check="speed.batch_cost", step="s", metric="batch_cost", values={}, **known),
        CheckResult(check="ran.steps", values={"ratio": 2.0}, **known),
    ]
    store.checks.replace("r1", results)
    assert store.node_use.ratios(T0) == [Ratio("local", ("node-a", "node-b"), "r1", T0, "ips", 0.8)]
