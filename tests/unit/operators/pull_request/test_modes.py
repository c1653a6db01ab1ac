"""Commands that run another mode: their results replace none of the repository's mode."""

import pytest
from tests.support.github.world import CHAIN, World
from tests.support.stories import a_run, record_run

from tipcflow.domain import Status, dag_id_of

pytestmark = pytest.mark.slow

DAG = dag_id_of(CHAIN)
WHOLE = "whole_train_whole_infer"


def finish_full_run(world: World, status: Status, attempt: int) -> None:
    run = world.run_of(attempt)
    record_run(world.store, a_run(run, chain=CHAIN, mode=WHOLE), status=None)
    world.store.runs.finish(run, status, "", world.store.now())


def test_rerun_of_failed_chains_follows_the_repositorys_mode(world: World) -> None:
    world.pull_request("opened")
    world.work()
    world.end(Status.REGRESSION, "12 % slower")
    world.comment(f"/tipc run whole {CHAIN}")
    world.work()
    finish_full_run(world, Status.PASS, 2)
    world.settle()
    assert world.check(2)["conclusion"] == "failure"
    assert f"({WHOLE})" in world.check(2)["output"]["summary"]
    world.comment("/tipc rerun failed", sender="author")
    world.work()
    assert world.dag_runs.started[(DAG, world.run_id(3))]["mode"] == "lite_train_lite_infer"
    world.end(attempt=3)
    world.settle()
    assert world.check(3)["conclusion"] == "success"


def test_rerun_without_failed_chains_keeps_the_failure_of_a_full_run(world: World) -> None:
    world.pull_request("opened")
    world.work()
    world.end()
    world.comment(f"/tipc run whole {CHAIN}")
    world.work()
    world.comment("/tipc rerun failed", sender="author")
    world.work()
    assert (DAG, world.run_id(3)) not in world.dag_runs.started
    assert world.check(3)["status"] != "completed", "the full run has not ended"
    finish_full_run(world, Status.REGRESSION, 2)
    world.settle()
    assert (world.check(3)["status"], world.check(3)["conclusion"]) == ("completed", "failure")
    assert world.store.pulls.living() == []


def test_cancelled_start_waits_for_runs_of_earlier_attempts(world: World) -> None:
    """Its check must not stay in progress forever."""
    world.pull_request("opened")
    world.work()
    world.begin()
    world.comment(f"/tipc run {CHAIN}")
    world.comment("/tipc cancel")
    world.work()
    world.store.runs.finish(world.run_of(), Status.CANCELLED, "stopped by a user", world.store.now())
    world.settle()
    assert (world.check(2)["status"], world.check(2)["conclusion"]) == ("completed", "cancelled")
    assert world.store.pulls.living() == []
