"""Records and logs of a job that other programs of its node have replaced; disks that are full at its start."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.case import leaks
from tests.faults.files import FAULTS
from tests.faults.world import World
from tests.support.certify import Site
from tests.support.faults.case import STRICT
from tests.support.tasks import Tasks

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import FailureClass, Run, Status, StepKind
from tipcflow.domain.run_documents import FailuresDocument

pytestmark = pytest.mark.cluster
BY_NAME = {fault.name: fault for fault in FAULTS}


@pytest.fixture
def world(nodes: LocalNodes, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, Site(tmp_path / "user", nodes), random.Random(0), target="b", rank=2, iteration=3)
    made.set_up()
    made.site.configure_policy(retries=STRICT["retries"])
    yield made
    for undo in made.undo:
        undo()


def classes(world: World, run: Run) -> list[tuple[str, str]]:
    """Class and node of every stored failure of the run."""
    with world.site.store() as store:
        kept = store.documents.get(run.id, FailuresDocument) or FailuresDocument()
    return [(failure.failure_class.value, failure.node) for failure in kept.root.values()]


def test_an_exit_record_of_another_run_is_damaged_evidence(world: World) -> None:
    BY_NAME["exit record of another run"].prepare(world)
    outcome = world.site.run()
    assert (outcome.code, outcome.run.status) == (5, Status.INFRA_FAILURE), outcome.output
    assert "Traceback" not in outcome.output
    words = "node b: exit.json is the exit record of another job: found run 'another', expected "
    assert f"{words}'{outcome.run.id}'" in outcome.run.reason
    assert classes(world, outcome.run) == [(FailureClass.EVIDENCE_LOST.value, "b")]
    assert world.site.left_behind() == []


@pytest.mark.parametrize(
    "what",
    [
        "log becomes a FIFO",
        *(pytest.param(f"log becomes {kind}", marks=pytest.mark.full) for kind in ("/dev/zero", "a secret")),
    ],
)
def test_a_log_that_another_program_replaced_is_lost_evidence(world: World, what: str) -> None:
    """The same end, whatever it became; the file it links to is not read."""
    outcome = world.site.run_and(world.reached, lambda _: BY_NAME[what].strike(world))
    kind = "FIFO" if what == "log becomes a FIFO" else "link"
    assert (outcome.code, outcome.run.status) == (5, Status.INFRA_FAILURE), outcome.output
    assert "/workerlog.0 of node b is lost: skipped, not a regular file (" + kind in outcome.run.reason
    assert classes(world, outcome.run) == [(FailureClass.EVIDENCE_LOST.value, "b")]
    assert world.notes == leaks(world) == []


FILL = {
    "bytes": "dd if=/dev/zero of={0}/filler bs=1M; dd if=/dev/zero of={0}/filler.4k bs=4k",
    "inodes": "n=0; while : > {0}/filler.$n; do n=$((n + 1)); done",
}


@pytest.mark.parametrize("what", sorted(FILL))
def test_full_disk_at_the_start_of_a_job_is_a_disk_failure(world: World, what: str) -> None:
    """Nothing of the disk of node b is left between two steps."""
    workspace = str(world.workspace)
    world.execute("mkdir", "-p", workspace)
    world.execute("mount", "-t", "tmpfs", "-o", "size=300m,nr_inodes=4000", "tmpfs", workspace)
    world.undo.append(lambda: world.nodes.exec("b", ["umount", "-l", workspace]) and None)
    tasks = Tasks(world.site)
    tasks.begin()
    tasks.step(StepKind.PREPARE)
    world.nodes.exec("b", ["bash", "-c", FILL[what].format(workspace)])
    tasks.step(StepKind.TRAIN)
    world.nodes.exec("b", ["bash", "-c", f"find {workspace} -maxdepth 1 -name 'filler*' -delete"])
    run = tasks.finish()
    assert run.status is Status.INFRA_FAILURE, run.reason
    assert classes(world, run) == [(FailureClass.DISK.value, "b")], run.reason
    assert world.notes == []
    assert tasks.site.left_behind() == []
