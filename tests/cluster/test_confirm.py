"""A training that became slower: measured once more, on real nodes, before it is a regression."""

import subprocess
from pathlib import Path

import pytest
from tests.support.certify import Desk, wait_for
from tests.support.precedents import remember

from tipcflow.demo.nodes import LocalNodes
from tipcflow.domain import Status
from tipcflow.execute import confirm

pytestmark = [pytest.mark.cluster, pytest.mark.full]


@pytest.fixture
def desk(nodes: LocalNodes, tmp_path: Path) -> Desk:
    return Desk(tmp_path, nodes)


def test_slower_twice_is_a_regression(desk: Desk) -> None:
    first = desk.run()
    assert first.code == 0, first.output
    with desk.store() as store:
        remember(store, first.run, runs=5)
    desk.edit_params("norm_train:train.py", "norm_train:train.py --step-time 0.05")
    slow = desk.run()
    with desk.store() as store:
        runs = {run.trigger: run for run in store.runs(limit=2)}
        confirmed, child = runs["cli"], runs[confirm.TRIGGER]
        asked = confirm.asked_of(store, confirmed.id)
        results = [one for one in store.check_results(confirmed.id) if one.check == "speed.batch_cost"]
        steps = [step.id for step in store.plan(child.id).steps]
        assert not store.leases()
    assert slow.code == 1, slow.output
    assert confirmed.status is Status.REGRESSION
    assert asked
    assert asked.run == child.id
    assert "confirming" in slow.output
    (result,) = results
    assert result.status is Status.REGRESSION
    assert "confirm" in result.reason
    assert [step.rpartition("/")[2] for step in steps] == ["prepare", "train"], "only what was in doubt"
    assert child.nodes == tuple(reversed(confirmed.nodes)), "on the nodes in another order"
    assert desk.left_behind() == []


def test_measured_once_more_before_a_run_that_waits_for_the_slots(desk: Desk) -> None:
    """Who waits would have the slots as soon as the run gives them back, and the confirm run would be too late."""
    first = desk.run()
    assert first.code == 0, first.output
    with desk.store() as store:
        remember(store, first.run, runs=5)
    desk.edit_params("norm_train:train.py", "norm_train:train.py --step-time 0.05")
    rivals: list[subprocess.Popen[bytes]] = []

    def rival(_: "subprocess.Popen[str]") -> None:
        # As urgent as a pull request, and there before the confirm run is.
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        rivals.append(subprocess.Popen(desk.command(trigger="ci"), env=desk.env, **quiet))
        wait_for(queued, what="the other run to wait for slots")

    def queued() -> bool:
        with desk.store() as store:
            return bool(store.lease_queue())

    try:
        slow = desk.run_and(lambda: desk.training_runs_on("a"), rival)
        for process in rivals:
            process.wait(180)
    finally:
        for process in rivals:
            process.kill()
    assert "confirming" in slow.output
    with desk.store() as store:
        began = {
            run.trigger: min(one.started_at for one in store.attempts(run.id))
            for run in store.runs(limit=10)
            if store.attempts(run.id)
        }
    assert began["cli"] < began[confirm.TRIGGER] < began["ci"]
    assert desk.left_behind() == []
