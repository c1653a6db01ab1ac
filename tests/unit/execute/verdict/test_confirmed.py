"""What counts of a confirm run that did not pass, and which of them is a finding of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.confirmations import told
from tests.support.stories import INFER, T0, TRAIN, a_plan, a_run, open_store, record_run

from tipcflow.check import verdict
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.domain import CheckResult, Measurement, MetricKey, Phase, Run, Status
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run.failure import REMEDIES, Failure, FailureClass
from tipcflow.domain.run_documents import ConfirmationDocument, FailuresDocument
from tipcflow.execute.verdict import confirm
from tipcflow.execute.verdict import judge as judgement
from tipcflow.execute.verdict.confirmed import confirmation_of
from tipcflow.store import Store

pytestmark = pytest.mark.slow

POLICY = Policy(name="p")
UNTIL = T0 + 60
KEY = MetricKey(TRAIN, "", "batch_cost")
CRASH, CUT = FailureClass.CODE_ERROR, FailureClass.BUDGET


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "t.db") as opened:
        yield opened


def in_doubt(store: Store) -> Run:
    """A run without a status that waits for the confirm run `child` until `UNTIL`."""
    run = record_run(store, a_run(created_at=T0, environment="cpu/x"), status=None)
    doubt = {"check": "speed.batch_cost", "reason": "slower", "step": TRAIN, "metric": "batch_cost"}
    store.checks.replace(run.id, [CheckResult(status=Status.UNCONFIRMED, values={"confirm": True}, **doubt)])
    store.documents.put(run.id, ConfirmationDocument(run="child", keys=(TRAIN,), until=UNTIL))
    return run


def a_child(store: Store, environment: str = "cpu/x") -> Run:
    """A confirm run that has begun."""
    child = a_run("child", trigger="confirm", created_at=T0 + 1, environment=environment)
    store.runs.create(child, a_plan())
    return child


def step(store: Store, name: str, *, ended_at: float, failure: FailureClass | None = None) -> None:
    """A step of the confirm run that ended then, failed for that reason or passed."""
    status = REMEDIES[failure].status if failure else Status.PASS
    number = store.attempts.open("child", name, ["node-a"], T0 + 2)
    if failure:
        kept = Failure(failure_class=failure).model_dump(mode="json")
        store.documents.merge("child", FailuresDocument, {AttemptKey(name, number): kept})
    store.attempts.close("child", name, number, status, "", [], ended_at)
    store.steps.set("child", name, status)


def measured(store: Store) -> None:
    known = {"run": "child", "step": TRAIN, "node": "node-b", "metric": "batch_cost", "unit": "s"}
    store.measurements.add([Measurement(**known, phase=Phase.TRAIN, value=0.25)])


@pytest.mark.parametrize("status", [Status.INFRA_FAILURE, Status.CANCELLED, Status.CONFIG_ERROR])
def test_nothing_counts_of_a_confirm_run_that_was_lost_or_stopped(store: Store, status: Status) -> None:
    run = in_doubt(store)
    a_child(store)
    step(store, TRAIN, ended_at=T0 + 20)
    measured(store)
    store.runs.finish("child", status, "node b was lost", T0 + 30)
    assert told(store, run) == ("child", {}, f"is {status.value}: node b was lost", "")


def test_crash_is_a_finding_and_earlier_measurements_count(store: Store) -> None:
    run = in_doubt(store)
    a_child(store)
    step(store, TRAIN, ended_at=T0 + 20)
    measured(store)
    step(store, INFER, ended_at=T0 + 25, failure=CRASH)
    store.runs.finish("child", Status.FAILED, "leg x: signal 11", T0 + 30)
    assert told(store, run) == ("child", {KEY: 0.25}, "is failed: leg x: signal 11", "leg x: signal 11")


@pytest.mark.parametrize("status", [Status.INFRA_FAILURE, Status.FAILED])
def test_step_cut_at_the_confirm_deadline_is_not_a_finding(store: Store, status: Status) -> None:
    """Also where a check fails because the training was cut."""
    run = in_doubt(store)
    a_child(store)
    step(store, TRAIN, ended_at=UNTIL + 1, failure=CUT)
    store.runs.finish("child", status, "train: the run's budget of 60 s is used up", UNTIL + 2)
    late = "did not finish before its deadline: train: the run's budget of 60 s is used up"
    assert told(store, run) == ("child", {}, late, "")


def test_step_not_started_in_time_is_not_a_finding(store: Store) -> None:
    run = in_doubt(store)
    a_child(store)
    step(store, TRAIN, ended_at=UNTIL - 1)
    measured(store)
    store.steps.set("child", INFER, Status.INFRA_FAILURE, "not started: the run's budget of 60 s is used up")
    store.runs.finish("child", Status.INFRA_FAILURE, "infer: not started", UNTIL + 1)
    assert told(store, run) == ("child", {}, "did not finish before its deadline: infer: not started", "")


@pytest.mark.parametrize("failure", [FailureClass.HANG, FailureClass.TIMEOUT, FailureClass.OOM_HOST])
def test_a_hang_and_a_step_beyond_its_own_deadline_are_findings(store: Store, failure: FailureClass) -> None:
    run = in_doubt(store)
    a_child(store)
    step(store, TRAIN, ended_at=UNTIL - 20, failure=failure)
    step(store, INFER, ended_at=UNTIL + 1, failure=CUT)
    store.runs.finish("child", Status.FAILED, "train: rank 1 hangs", UNTIL + 2)
    assert told(store, run) == ("child", {}, "is failed: train: rank 1 hangs", "train: rank 1 hangs")


def test_checks_that_fail_in_the_confirm_run_are_a_finding(store: Store) -> None:
    run = in_doubt(store)
    a_child(store)
    step(store, TRAIN, ended_at=T0 + 20)
    store.runs.finish("child", Status.FAILED, "loss.finite: loss is nan", T0 + 30)
    assert (told(store, run) or ())[3] == "loss.finite: loss is nan"


def test_another_environment_is_ignored(store: Store) -> None:
    run = in_doubt(store)
    a_child(store, environment="gpu/y")
    step(store, TRAIN, ended_at=T0 + 20, failure=CRASH)
    store.runs.finish("child", Status.FAILED, "no such device", T0 + 30)
    assert told(store, run) == ("child", {}, "ran in another environment: gpu/y", "")


def judged(store: Store, run: Run) -> list[CheckResult]:
    """The judged run's result for its confirm run."""
    judgement.judge_run(store, run.id, rules=POLICY, references=References(suite="s"))
    return [one for one in store.checks.results(run.id) if one.check == "confirm.run"]


def test_a_run_whose_confirm_run_crashed_is_not_green(store: Store) -> None:
    run = in_doubt(store)
    a_child(store)
    assert judged(store, run) == []
    step(store, TRAIN, ended_at=T0 + 20, failure=CRASH)
    store.runs.finish("child", Status.FAILED, "train: exit code 1 on node a", T0 + 30)
    (result,) = judged(store, run)
    assert (result.status, result.gating) == (Status.FAILED, True)
    assert result.reason == "confirm run child of the same code failed: train: exit code 1 on node a"
    # Whatever the other checks of the run report.
    assert verdict(store.history.facts(run.id), [result]) == (Status.FAILED, f"confirm.run: {result.reason}")


def test_numbers_of_a_confirm_run_are_not_gating_in_its_verdict(store: Store) -> None:
    """It is slower than the history: the conclusion is part of the verdict of the run that it confirms."""
    past = {"step": TRAIN, "node": "node-a", "metric": "batch_cost", "unit": "s", "phase": Phase.TRAIN}
    for number in range(6):
        before = record_run(store, a_run(f"before-{number}", created_at=T0 - 100 + number, environment="cpu/x"))
        store.measurements.add([Measurement(run=before.id, value=0.05, **past)])
    child = record_run(
        store, a_run("child", trigger="confirm", created_at=T0 + 1, environment="cpu/x"), status=None
    )
    measured(store)
    judgement.judge_run(store, child.id, rules=POLICY, references=References(suite="s"))
    (result,) = [one for one in store.checks.results(child.id) if one.check == "speed.batch_cost"]
    assert result.values["ratio"] == pytest.approx(5.0)
    assert not result.gating
    assert not confirm.suspected([result])


def test_measurements_of_all_confirm_runs_count(store: Store) -> None:
    run = in_doubt(store)
    a_child(store)
    step(store, TRAIN, ended_at=T0 + 20)
    measured(store)
    store.runs.finish("child", Status.UNCONFIRMED, "slower", T0 + 30)
    request = ConfirmationDocument(run="second", keys=(TRAIN,), until=UNTIL + 60, earlier=("child",))
    store.documents.put(run.id, request)
    waits = confirmation_of(store, run.id)
    assert waits
    assert (waits.run, waits.values, waits.runs) == ("second", {KEY: (0.25,)}, 2)
    assert waits.missing
    store.runs.create(a_run("second", trigger="confirm", created_at=T0 + 40, environment="cpu/x"), a_plan())
    number = store.attempts.open("second", TRAIN, ["node-a"], T0 + 41)
    store.attempts.close("second", TRAIN, number, Status.PASS, "", [], T0 + 50)
    store.steps.set("second", TRAIN, Status.PASS)
    known = {"run": "second", "step": TRAIN, "node": "node-b", "metric": "batch_cost", "unit": "s"}
    store.measurements.add([Measurement(**known, phase=Phase.TRAIN, value=0.27)])
    store.runs.finish("second", Status.UNCONFIRMED, "slower", T0 + 60)
    found = confirmation_of(store, run.id)
    assert found
    assert (found.values, found.runs, found.last) == ({KEY: (0.25, 0.27)}, 2, "")


def test_no_confirm_run_follows_one_that_failed(store: Store) -> None:
    run = in_doubt(store)
    a_child(store)
    step(store, TRAIN, ended_at=T0 + 20)
    measured(store)
    step(store, INFER, ended_at=T0 + 25, failure=CRASH)
    store.runs.finish("child", Status.FAILED, "leg x: signal 11", T0 + 30)
    found = confirmation_of(store, run.id)
    assert found
    assert found.last == "the confirm run child failed"
