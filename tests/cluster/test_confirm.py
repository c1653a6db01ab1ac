"""A training that became slower: measured once more, on real nodes, before it is a regression."""

import subprocess
from pathlib import Path

import pytest
from tests.support.certify import Desk, wait_for
from tests.support.precedents import remember

from tipcflow.demo.nodes import LocalNodes
from tipcflow.domain import Status
from tipcflow.execute import confirm

pytestmark = pytest.mark.cluster
WHOLE = "whole_train_whole_infer"


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


@pytest.mark.full
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


@pytest.mark.full
def test_accuracy_that_fell_is_confirmed_by_evaluating_again_what_was_trained(desk: Desk) -> None:
    desk.configure_policy(accuracy={"too_good": 3, "history": True})
    first = desk.run(mode=WHOLE)
    assert first.code == 0, first.output
    with desk.store() as store:
        remember(store, first.run, runs=5)
    script = desk.suite / "train.py"
    text = script.read_text()
    assert "Acc@1 0.875" in text
    script.write_text(text.replace("Acc@1 0.875", "Acc@1 0.500"))
    worse = desk.run(mode=WHOLE)
    with desk.store() as store:
        runs = {run.trigger: run for run in store.runs(limit=2)}
        confirmed, child = runs["cli"], runs[confirm.TRIGGER]
        (result,) = [
            one for one in store.check_results(confirmed.id) if one.metric == "top1" and one.step.endswith("/eval")
        ]
        steps = store.plan(child.id).steps
        ended = store.step_statuses(child.id)
        evaluated = store.plan(confirmed.id).step(steps[0].id)
    assert worse.code == 1, worse.output
    assert (confirmed.status, result.status) == (Status.REGRESSION, Status.REGRESSION)
    assert "the confirm run measured" in result.reason
    assert [step.id.rpartition("/")[2] for step in steps] == ["eval"], "nothing is trained again"
    assert [status for status, _ in ended.values()] == [Status.PASS]
    assert steps[0].nodes == evaluated.nodes, "where the weights are"
    assert desk.left_behind() == []


@pytest.mark.full
def test_accuracy_is_judged_alone_when_what_was_trained_is_gone(desk: Desk) -> None:
    desk.configure_policy(accuracy={"too_good": 3, "history": True})
    first = desk.run(mode=WHOLE)
    assert first.code == 0, first.output
    with desk.store() as store:
        remember(store, first.run, runs=5)
    script = desk.suite / "train.py"
    # The evaluation takes the weights away.
    script.write_text(
        script.read_text().replace('print(" * Acc@1 0.875', 'os.remove(args.pretrained); print(" * Acc@1 0.500')
    )
    desk.edit_params("norm_export:tools/export_model.py", "norm_export:null")
    worse = desk.run(mode=WHOLE)
    with desk.store() as store:
        runs = {run.trigger: run for run in store.runs(limit=2)}
        child = runs[confirm.TRIGGER]
        (result,) = [
            one
            for one in store.check_results(runs["cli"].id)
            if one.metric == "top1" and one.step.endswith("/eval")
        ]
    assert child.status is Status.INFRA_FAILURE
    assert "latest.pdparams* is not there any more" in child.reason
    assert result.status is Status.REGRESSION, worse.output
    assert "needs no confirm run" in result.reason
    assert child.reason in result.reason
