"""Sweeps on real nodes, beside runs that continue."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.certify import Site, wait_for
from tests.support.tasks import Tasks

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Status, StepKind
from tipcflow.domain.run_documents import AirflowDocument
from tipcflow.execute.run import phases as task_phases
from tipcflow.execute.sweeps.leases import expired_leases
from tipcflow.execute.sweeps.maintenance import DAY_S, Owner, Upkeep
from tipcflow.execute.sweeps.node_folders import node_folders
from tipcflow.execute.sweeps.runs import runs_without_status
from tipcflow.transport.connect import connect

pytestmark = pytest.mark.cluster
TRAIN = "norm_train_gpus_0,1_autocast_null_nodes_2/train"


@pytest.fixture
def tasks(nodes: LocalNodes, tmp_path: Path) -> Iterator[Tasks]:
    made = Tasks(Site(tmp_path, nodes))
    yield made
    task_phases.release_run(made.context())  # a failed test must not break the next


def upkeep(tasks: Tasks, *, owner: Owner = Owner.UNKNOWN, later: float = 0.0) -> tuple[Upkeep, list[str]]:
    messages: list[str] = []
    made = Upkeep(
        tasks.site.store(),
        tasks.home,
        tasks.site.configs,
        connect,
        messages.append,
        owner=lambda dag_id, run_id: owner,
        listen=lambda run: tasks.events.append,
        now=time.time() + later,
    )
    return made, messages


def train_for_ever(tasks: Tasks) -> None:
    """A run whose tasks died while node b trains; the part of node a ends by itself."""
    tasks.site.edit_params("norm_train:train.py", "norm_train:train.py --inject hang@3")
    tasks.begin()
    tasks.store.documents.put(tasks.run, AirflowDocument(dag_id="toy", run_id="test__1"))
    tasks.step(StepKind.PREPARE)
    tasks.with_part(StepKind.TRAIN, "a", lambda part: part.begin())
    wait_for(lambda: tasks.site.training_runs_on("b"), what="the training")
    wait_for(lambda: not tasks.site.nodes.processes("a"), what="the end on node a")


def folders(tasks: Tasks, run: str) -> list[Path]:
    """The run's folders on the nodes."""
    found = [
        Path(node.workspace) / kind / run for node in tasks.site.nodes.cluster.nodes for kind in ("runs", "jobs")
    ]
    return [path for path in found if path.exists()]


def test_abandoned_run_is_ended_and_judged_but_not_a_running_one(tasks: Tasks) -> None:
    train_for_ever(tasks)
    beside, messages = upkeep(tasks, owner=Owner.LIVING, later=9 * DAY_S)
    assert runs_without_status(beside) == "1 runs without a status: 0 got one, 1 are still running"
    # After a day without a renewal of its lease, it still trains: its slots are not free.
    assert expired_leases(beside) == "4 leases expired: 2 were dropped"
    assert f"run {tasks.run}: 2 leases kept: jobs on node b: {tasks.run}/{TRAIN}/1" in messages
    assert tasks.site.training_runs_on("b")

    gone, messages = upkeep(tasks, owner=Owner.ENDED)
    assert runs_without_status(gone) == "1 runs without a status: 1 got one, 0 are still running"
    run = tasks.store.runs.get(tasks.run)
    assert run.status is Status.INFRA_FAILURE
    assert "DAG run ended without a run status" in run.reason
    statuses = tasks.store.steps.statuses(run.id)
    assert statuses[TRAIN][0] is Status.INFRA_FAILURE  # no user stopped it
    assert set(statuses) == {step.id for step in tasks.plan.steps}
    assert tasks.site.left_behind() == []
    assert (tasks.home / "runs" / run.id / "certificate.json").is_file()
    assert runs_without_status(gone) == "0 runs without a status: 0 got one, 0 are still running"


def test_maintenance_ends_leftovers_of_an_ended_run_and_frees_slots(tasks: Tasks) -> None:
    train_for_ever(tasks)
    tasks.store.runs.finish(tasks.run, Status.INFRA_FAILURE, "a node was away", time.time())
    now, _ = upkeep(tasks)
    assert expired_leases(now) == "0 leases expired: 0 were dropped"
    later, messages = upkeep(tasks, later=DAY_S)
    assert expired_leases(later) == "4 leases expired: 4 were dropped"
    assert f"run {tasks.run} has ended, but had jobs on node b; ended there: {tasks.run}/{TRAIN}/1" in messages
    assert tasks.site.left_behind() == []


def test_folders_of_ended_runs_are_removed_after_the_retention(tasks: Tasks) -> None:
    tasks.site.edit_params("norm_train:train.py", "norm_train:train.py --inject exit@3")
    tasks.begin()
    tasks.step(StepKind.PREPARE)
    tasks.step(StepKind.TRAIN)
    assert tasks.finish().status is Status.FAILED
    assert len(folders(tasks, tasks.run)) == 4
    unknown = "20200101t000000-of_another_desk-abcd"
    for node in tasks.site.nodes.cluster.nodes:
        (Path(node.workspace) / "runs" / unknown).mkdir()

    early, _ = upkeep(tasks, later=13 * DAY_S)
    assert "folders of 0 runs removed" in node_folders(early)
    tasks.site.nodes.kill_sshd("b")
    try:
        late, messages = upkeep(tasks, later=15 * DAY_S)
        assert node_folders(late).startswith("1 nodes checked: folders of 1 runs removed")
        assert any("node b" in line for line in messages)
    finally:
        tasks.site.nodes.start_sshd("b")
    assert len(folders(tasks, tasks.run)) == 2
    assert node_folders(late).startswith("2 nodes checked: folders of 1 runs removed")
    assert folders(tasks, tasks.run) == []
    assert len(folders(tasks, unknown)) == 2
