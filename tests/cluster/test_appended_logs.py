"""A launcher appends to its logs, and the second attempt ends before its first loss: what the first printed is the
first's."""

import random
from pathlib import Path

import pytest
from tests.faults.losses import RANKS, stored
from tests.faults.world import WAITS, World
from tests.support.certify import Site
from tests.support.faults.case import STRICT

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Status
from tipcflow.domain.run.failure import FailureClass

pytestmark = pytest.mark.cluster
BEFORE_EPOCHS = "generator = random.Random("
# After the line that each rank prints at its start.
SECOND_ATTEMPT_FAILS = (
    "if os.environ['TIPCFLOW_JOB'].endswith('/2'):\n    time.sleep(0.5)\n    sys.exit('the data is broken')\n"
)


def test_an_attempt_that_ends_before_its_first_loss_stores_none(nodes: LocalNodes, tmp_path: Path) -> None:
    site = Site(tmp_path / "user", nodes)
    world = World(tmp_path, site, random.Random(0), victim="b", rank=2, iteration=3)
    world.set_up()
    site.configure_policy(retries={**STRICT["retries"], FailureClass.COMMUNICATION.value: 1}, waits=WAITS)
    site.edit_params("norm_train:train.py", "norm_train:train.py --inject net@2")
    world.in_train(BEFORE_EPOCHS, SECOND_ATTEMPT_FAILS + BEFORE_EPOCHS)
    outcome = site.run("--keep")
    assert outcome.run.status is Status.FAILED, outcome.output
    assert "the data is broken" in outcome.run.reason
    assert "NCCL" not in outcome.run.reason, "that is what attempt 1 printed"
    printed, kept = world.ledger(), stored(site, outcome.run.id)
    assert {attempt for attempt, _ in printed} == {1}, "attempt 2 was to end before its first loss"
    assert all(len(kept[1, rank]) >= 2 for rank in range(RANKS)), "attempt 1 printed losses"
    assert [key for key in kept if key[0] == 2] == []
    (log,) = (Path(nodes.cluster.node("a").workspace) / "runs").glob(f"{outcome.run.id}/src/**/workerlog.0")
    assert log.read_text().count("backend gloo") == 2, "the launcher did not append to its log"
