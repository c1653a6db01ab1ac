"""Whole runs, many to a transaction: equal to what the parts of a store write one by one."""

import pytest
from sqlalchemy.exc import IntegrityError
from tests.support.stories import INFER, T0, TRAIN, a_plan, a_run, losses, record_run, some_facts

from tipcflow.domain import Attempt, CheckResult, LegKey, Status
from tipcflow.domain.generated import GeneratedDocument
from tipcflow.store import Store
from tipcflow.store.recorded import RecordedRun


def recorded(run_id: str = "r1") -> RecordedRun:
    run = a_run(run_id, status=Status.PASS, ended_at=T0 + 20)
    attempt = Attempt(
        run=run.id, step=TRAIN, attempt=1, nodes=run.nodes, status=Status.PASS, started_at=T0, ended_at=T0 + 9
    )
    return RecordedRun(
        run=run,
        plan=a_plan(),
        nodes=[some_facts("node-a")],
        attempts=[attempt],
        steps={TRAIN: (Status.PASS, ""), INFER: (Status.NOT_RUN, "no legs")},
        legs={LegKey(INFER, "cpu_onednn_on"): (Status.NOT_RUN, "no AVX512")},
        measurements=losses(run.id, [2.0, 1.0]),
        checks=[CheckResult(check="ran.steps", status=Status.PASS, reason="all")],
        documents=[GeneratedDocument(by="a test")],
    )


def test_recorded_run_is_read_like_any_run(store: Store) -> None:
    store.recorded.add([recorded("r1"), recorded("r2")])
    assert store.runs.get("r2") == recorded("r2").run
    assert store.plans.get("r1") == a_plan()
    assert store.nodes.facts("r1") == [some_facts("node-a")]
    assert store.attempts.of("r1") == list(recorded().attempts)
    assert store.steps.statuses("r1") == dict(recorded().steps)
    assert store.steps.leg_statuses("r1") == dict(recorded().legs)
    assert store.measurements.of("r1") == list(recorded().measurements)
    assert store.checks.results("r1") == list(recorded().checks)
    assert store.documents.get("r1", GeneratedDocument) == GeneratedDocument(by="a test")


def test_all_recorded_runs_are_stored_or_none(store: Store) -> None:
    store.recorded.add([recorded("r1")])
    with pytest.raises(IntegrityError):
        store.recorded.add([recorded("r2"), recorded("r1")])
    assert [run.id for run in store.runs.newest()] == ["r1"]


def test_generated_runs_are_counted_apart(store: Store) -> None:
    assert (store.recorded.counts(), store.recorded.has_generated()) == ((0, 0), False)
    store.recorded.add([recorded("r1")])
    assert (store.recorded.counts(), store.recorded.has_generated()) == ((1, 0), True)
    record_run(store, a_run("r2", created_at=T0 + 99))
    assert (store.recorded.counts(), store.recorded.has_generated()) == ((1, 1), False)
