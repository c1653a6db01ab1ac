"""Whose fault it is when somebody or something else than the model ends a job on real nodes."""

import subprocess
from pathlib import Path

import pytest
from tests.support.certify import TIPCFLOW, Desk, Outcome
from tests.support.faults.case import STRICT

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import FailureClass, Status, StoppedBy
from tipcflow.domain.run.failure import Failure

pytestmark = pytest.mark.cluster
TRAIN = "norm_train_gpus_0,1_autocast_null_nodes_2/train"


@pytest.fixture
def desk(nodes: LocalNodes, tmp_path: Path) -> Desk:
    made = Desk(tmp_path, nodes)
    made.configure_policy(**STRICT)
    return made


def slow(desk: Desk, seconds: float) -> None:
    desk.edit_params("norm_train:train.py", f"norm_train:train.py --step-time {seconds}")


def failure_of(desk: Desk, outcome: Outcome) -> Failure:
    with desk.store() as store:
        return store.facts(outcome.run.id).failures[TRAIN]


def stopped_by(desk: Desk, outcome: Outcome, node: str) -> StoppedBy | None:
    with desk.store() as store:
        attempt = next(one for one in store.attempts(outcome.run.id) if one.step == TRAIN)
    return next(record.stopped_by for record in attempt.records if record.node == node)


@pytest.mark.parametrize("everything", [True, False], ids=["all processes", "the runner"])
def test_the_shutdown_of_a_node_is_no_failure_of_the_model(desk: Desk, everything: bool) -> None:
    """systemd sends SIGTERM to every process; a kill of the runner alone looks the same to the job."""
    slow(desk, 6)

    def shut_down(_: object) -> None:
        there = [one for one in desk.nodes.processes("b") if everything or " daemon " in one.cmdline]
        assert there
        desk.nodes.exec("b", ["kill", "-TERM", *(str(one.pid) for one in there)])

    outcome = desk.run_and(lambda: desk.training_runs_on("b"), shut_down)
    assert outcome.run.status is Status.INFRA_FAILURE, outcome.output
    assert outcome.code == 2
    failure = failure_of(desk, outcome)
    assert (failure.failure_class, failure.culprit) == (FailureClass.NODE_LOST, "node b"), outcome.run.reason
    assert stopped_by(desk, outcome, "b") is StoppedBy.NODE
    assert stopped_by(desk, outcome, "a") is StoppedBy.PEER
    assert outcome.run.reason.startswith(f"{TRAIN}: node b shut down"), outcome.run.reason
    assert desk.left_behind() == []


def test_a_reap_by_an_operator_is_no_failure_of_the_model(desk: Desk, tmp_path: Path) -> None:
    """From another database, which knows nothing of the run's lease."""
    slow(desk, 6)
    env = {**desk.env, "TIPCFLOW_HOME": str(tmp_path / "other")}

    def reap(_: object) -> None:
        command = [str(TIPCFLOW), "nodes", "--cluster", "local", "reap", "--run", desk.latest().id]
        subprocess.run(command, env=env, capture_output=True, timeout=60, check=True)

    outcome = desk.run_and(lambda: desk.training_runs_on("b"), reap)
    assert outcome.run.status is Status.INFRA_FAILURE, outcome.output
    failure = failure_of(desk, outcome)
    assert failure.failure_class is FailureClass.INTERRUPTED, outcome.run.reason
    assert stopped_by(desk, outcome, failure.node) is StoppedBy.OPERATOR
    assert "an operator ended" in outcome.run.reason


def test_the_budget_that_ends_a_training_is_no_failure_of_the_model(desk: Desk) -> None:
    desk.configure_suite(budget_minutes=0.15)
    slow(desk, 3)
    outcome = desk.run()
    assert outcome.run.status is Status.INFRA_FAILURE, outcome.output
    assert failure_of(desk, outcome).failure_class is FailureClass.BUDGET, outcome.run.reason
    assert outcome.run.reason.startswith(f"{TRAIN}: the run's budget of 0.15 min is used up"), outcome.run.reason


@pytest.mark.full
def test_after_a_lost_node_and_the_end_of_the_budget_the_reason_names_the_node(desk: Desk) -> None:
    """What comes after the training is blocked by it, whatever the time."""
    desk.configure_suite(budget_minutes=0.15)
    desk.configure_policy(waits={"reconnect_s": 5, "silence_s": 3, "node_lease_s": 5})
    slow(desk, 3)
    try:
        outcome = desk.run_and(lambda: desk.training_runs_on("b"), lambda _: desk.nodes.cut("b"))
    finally:
        desk.nodes.restore("b")
    assert outcome.run.status is Status.INFRA_FAILURE, outcome.output
    assert outcome.run.reason.startswith(f"{TRAIN}: node b"), outcome.run.reason
    with desk.store() as store:
        statuses = store.step_statuses(outcome.run.id)
    assert {status for step, (status, _) in statuses.items() if step not in (TRAIN, "prepare")} <= {
        Status.BLOCKED,
        Status.NOT_RUN,
    }
