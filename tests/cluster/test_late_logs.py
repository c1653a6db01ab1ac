"""A node is lost in the middle of a training whose launcher appends to its logs, and answers again: what both
attempts printed is stored once, each loss with the attempt that printed it."""

import random
import time
from pathlib import Path

import pytest
from tests.faults.world import EPOCHS, ITERATIONS, RANKS, WAITS, World, doubled_or_lost, stored
from tests.support.certify import Site, wait_for
from tests.support.faults.case import STRICT

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Status
from tipcflow.domain.run.failure import FailureClass

pytestmark = pytest.mark.cluster
ON_B = (2, 3)


@pytest.fixture
def world(nodes: LocalNodes, tmp_path: Path) -> World:
    made = World(tmp_path, Site(tmp_path / "user", nodes), random.Random(0), victim="b", rank=ON_B[0], iteration=3)
    made.set_up()
    retries = {**STRICT["retries"], FailureClass.NODE_LOST.value: 1}
    made.site.configure_policy(retries=retries, waits={**WAITS, "reconnect_s": 4})
    made.site.edit_params("--step-time 0.15", "--step-time 2")
    return made


def test_losses_of_a_lost_node_are_stored_once_with_their_attempt(world: World) -> None:
    site, nodes = world.site, world.nodes
    lost: dict[int, int] = {}

    def lose(_: object) -> None:
        nodes.cut("b")
        # The controller gives b up and stops the peers on a.
        wait_for(lambda: not site.training_runs_on("a"), what="the end of the training on node a")
        time.sleep(1.0)  # the logs of b cannot be fetched with the end of attempt 1
        lost.update({rank: len(world.ledger()[1, rank]) for rank in ON_B})
        nodes.restore("b")

    try:
        outcome = site.run_and(world.reached, lose, "--keep")
    finally:
        nodes.restore("b")
    assert outcome.run.status is Status.PASS, outcome.output
    printed, kept = world.ledger(), stored(site, outcome.run.id)
    with site.store() as store:
        tries = [one for one in store.attempts(outcome.run.id) if one.step.endswith("/train")]
    assert [one.attempt for one in tries] == [1, 2]
    assert doubled_or_lost(printed, kept, passed=True) == []
    for rank in range(RANKS):
        assert len(kept[2, rank]) == EPOCHS * ITERATIONS, f"rank {rank} of attempt 2"
    for rank in ON_B:
        # The line that was just being written when the job ended may be missing.
        assert abs(len(kept[1, rank]) - len(printed[1, rank])) <= 1, f"rank {rank} of attempt 1"
        assert len(kept[1, rank]) >= lost[rank] - 1 >= 2, "fetched late, with what was printed while b was away"
    (log,) = (Path(nodes.cluster.node("b").workspace) / "runs").glob(f"{outcome.run.id}/src/**/workerlog.0")
    both = len(printed[1, ON_B[0]]) + EPOCHS * ITERATIONS
    assert log.read_text().count("loss:") >= both - 1, "the launcher did not append to its log"
    second = site.run()
    assert second.run.status is Status.PASS, second.output
    assert "equal those of run" in second.output
