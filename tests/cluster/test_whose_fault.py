"""The failure class of a job on real nodes that something other than the model ended."""

import subprocess
from pathlib import Path

import pytest
from tests.support.certify import TIPCFLOW, Outcome, Site
from tests.support.faults.case import STRICT

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import FailureClass, Status, StoppedBy
from tipcflow.domain.run.failure import Failure

pytestmark = pytest.mark.cluster
TRAIN = "norm_train_gpus_0,1_autocast_null_nodes_2/train"


@pytest.fixture
def site(nodes: LocalNodes, tmp_path: Path) -> Site:
    made = Site(tmp_path, nodes)
    made.configure_policy(**STRICT)
    return made


def slow(site: Site, seconds: float) -> None:
    site.edit_params("norm_train:train.py", f"norm_train:train.py --step-time {seconds}")


def failure_of(site: Site, outcome: Outcome) -> Failure:
    with site.store() as store:
        return store.history.facts(outcome.run.id).failures[TRAIN]


def stopped_by(site: Site, outcome: Outcome, node: str) -> StoppedBy | None:
    with site.store() as store:
        attempt = next(one for one in store.attempts.of(outcome.run.id) if one.step == TRAIN)
    return next(record.stopped_by for record in attempt.records if record.node == node)


@pytest.mark.parametrize("everything", [True, False], ids=["all processes", "the runner"])
def test_the_shutdown_of_a_node_is_not_a_failure_of_the_model(site: Site, everything: bool) -> None:
    """systemd sends SIGTERM to every process; a kill of the runner alone looks the same to the job."""
    slow(site, 6)

    def shut_down(_: object) -> None:
        there = [one for one in site.nodes.processes("b") if everything or " daemon " in one.cmdline]
        assert there
        site.nodes.exec("b", ["kill", "-TERM", *(str(one.pid) for one in there)])

    outcome = site.run_and(lambda: site.training_runs_on("b"), shut_down)
    assert outcome.run.status is Status.INFRA_FAILURE, outcome.output
    assert outcome.code == 5
    failure = failure_of(site, outcome)
    assert (failure.failure_class, failure.root_cause) == (FailureClass.NODE_LOST, "node b"), outcome.run.reason
    assert stopped_by(site, outcome, "b") is StoppedBy.NODE
    assert stopped_by(site, outcome, "a") is StoppedBy.PEER
    assert outcome.run.reason.startswith(f"{TRAIN}: node b shut down"), outcome.run.reason
    assert site.left_behind() == []


def test_a_reap_by_an_operator_is_not_a_failure_of_the_model(site: Site, tmp_path: Path) -> None:
    """From another database, which knows nothing of the run's lease."""
    slow(site, 6)
    env = {**site.env, "TIPCFLOW_HOME": str(tmp_path / "other")}

    def reap(_: object) -> None:
        command = [str(TIPCFLOW), "nodes", "--cluster", "local", "reap", "--run", site.latest().id]
        subprocess.run(command, env=env, capture_output=True, timeout=60, check=True)

    outcome = site.run_and(lambda: site.training_runs_on("b"), reap)
    assert outcome.run.status is Status.INFRA_FAILURE, outcome.output
    failure = failure_of(site, outcome)
    assert failure.failure_class is FailureClass.INTERRUPTED, outcome.run.reason
    assert stopped_by(site, outcome, failure.node) is StoppedBy.OPERATOR
    assert "an operator ended" in outcome.run.reason


def test_training_ended_by_the_budget_is_not_a_model_failure(site: Site) -> None:
    site.configure_suite(budget_minutes=0.15)
    slow(site, 3)
    outcome = site.run()
    assert outcome.run.status is Status.INFRA_FAILURE, outcome.output
    assert failure_of(site, outcome).failure_class is FailureClass.BUDGET, outcome.run.reason
    assert outcome.run.reason.startswith(f"{TRAIN}: the run's budget of 9 s is used up"), outcome.run.reason


@pytest.mark.full
def test_reason_names_the_lost_node_although_the_budget_ended_too(site: Site) -> None:
    """What comes after the training is blocked by it, whatever the time."""
    site.configure_suite(budget_minutes=0.5)
    site.configure_policy(waits={"reconnect_s": 5, "silence_s": 3, "node_lease_s": 5})
    slow(site, 3)
    try:
        outcome = site.run_and(lambda: site.training_runs_on("b"), lambda _: site.nodes.cut("b"))
    finally:
        site.nodes.restore("b")
    assert outcome.run.status is Status.INFRA_FAILURE, outcome.output
    assert outcome.run.reason.startswith(f"{TRAIN}: node b"), outcome.run.reason
    with site.store() as store:
        statuses = store.steps.statuses(outcome.run.id)
    assert {status for step, (status, _) in statuses.items() if step not in (TRAIN, "prepare")} <= {
        Status.BLOCKED,
        Status.NOT_RUN,
    }
