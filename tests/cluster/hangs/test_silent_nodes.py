"""Trainings whose ranks print on one node only: the other nodes alone cannot detect a hang."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.certify import Site
from tests.support.tasks import Tasks

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Attempt, EndReason, FailureClass, Status, StepKind
from tipcflow.execute.run import phases as task_phases

pytestmark = pytest.mark.cluster
TRAIN = "norm_train_gpus_0,1_autocast_null_nodes_2/train"
PRINTS = "        print(\n"
# Ten iterations of 2 s: the training takes five times `hang_s`, and longer than a hung job is left running.
STEP_S = "--step-time=2"
HANG_S = 4


@pytest.fixture
def site(nodes: LocalNodes, tmp_path: Path) -> Site:
    made = Site(tmp_path, nodes)
    script = made.suite / "train.py"
    text = script.read_text()
    assert PRINTS in text
    script.write_text(text.replace(PRINTS, "        rank == 0 and print(\n"))
    made.configure_policy(hang_s=HANG_S)
    return made


@pytest.fixture
def tasks(site: Site) -> Iterator[Tasks]:
    made = Tasks(site)
    yield made
    task_phases.release_run(made.context())  # a failed test must not break the next


def set_up(site: Site, options: str) -> None:
    site.edit_params("norm_train:train.py", f"norm_train:train.py {options}")


def training(site: Site, run: str) -> Attempt:
    with site.store() as store:
        return next(attempt for attempt in store.attempts.of(run) if attempt.step == TRAIN)


def test_node_with_silent_ranks_does_not_hang_while_a_peer_progresses(site: Site) -> None:
    set_up(site, STEP_S)
    outcome = site.run()
    made = training(site, outcome.run.id)
    assert made.status is Status.PASS, outcome.output
    assert {record.reason for record in made.records} == {EndReason.EXITED}
    assert "node b hangs" not in outcome.output


def test_the_tasks_of_airflow_find_out_too(tasks: Tasks) -> None:
    set_up(tasks.site, STEP_S)
    tasks.begin()
    tasks.step(StepKind.PREPARE, generation=1)
    result = tasks.step(StepKind.TRAIN, generation=1)
    assert {status for status, _ in result.values()} == {Status.PASS}, result


@pytest.mark.parametrize(
    ("options", "who"),
    [
        # The rank that prints hangs; both nodes are silent.
        ("--inject stall@0", "node a, rank 0"),
        # No rank ever prints an iteration.
        ("--inject mute@0 --step-time=3600", ""),
    ],
    ids=["after iterations", "from the start"],
)
def test_a_training_that_hangs_on_all_nodes_ends_soon(site: Site, options: str, who: str) -> None:
    set_up(site, options)
    outcome = site.run()
    assert outcome.code == 1, outcome.output
    with site.store() as store:
        failure = store.history.facts(outcome.run.id).failures[TRAIN]
    assert failure.failure_class is FailureClass.HANG, outcome.output
    if who:
        assert failure.root_cause == who, outcome.output
    made = training(site, outcome.run.id)
    assert made.ended_at is not None
    assert made.ended_at - made.started_at < 60
    assert site.left_behind() == []
