"""Requests of users about a pull request that ran before: buttons, commands, and a new base branch."""

import pytest
from tests.support.github.world import CHAIN, World

from tipcflow.domain import Status, dag_id_of

pytestmark = pytest.mark.slow

DAG = dag_id_of(CHAIN)


def test_a_rerun_is_a_new_attempt_and_its_repetition_is_not(world: World) -> None:
    world.pull_request("opened")
    world.work()
    world.end(Status.INFRA_FAILURE, "node b is unreachable")
    world.comment("/re-run all-failed")
    world.settle()
    assert len(world.dag_runs.started) == 2
    assert world.check(2)["status"] == "queued"
    world.end(attempt=2)
    world.comment("/tipc rerun failed")
    world.settle()
    assert len(world.dag_runs.started) == 2, "every chain passed in attempt 2"
    assert world.check(2)["conclusion"] == "success"
    check = world.check(3)
    assert (check["status"], check["conclusion"]) == ("completed", "success"), "the result of attempt 2"
    assert "every selected chain has passed in mode lite_train_lite_infer before" in check["output"]["summary"]
    assert world.store.pulls.living() == []


def test_command_with_an_unknown_chain_requires_action(world: World) -> None:
    world.comment("/tipc run toy/none/*")
    world.settle()
    assert world.dag_runs.started == {}
    assert world.check()["conclusion"] == "action_required"
    assert "command: no chain matches toy/none/" in world.check()["output"]["summary"]


def test_the_buttons_of_a_check_run_approve_and_run_again(world: World) -> None:
    world.push(fork=True)
    world.pull_request("opened")
    world.work()
    button = {
        "action": "requested_action",
        "check": 1,
        "name": "tipcflow",
        "head_sha": world.sha,
        "external_id": "7/1",
        "app": "tipcflow",
        "sender": "maintainer",
    }
    world.deliver("check_run", **{**button, "identifier": "approve", "sender": "author"})
    world.work()
    assert world.dag_runs.started == {}
    world.deliver("check_run", **button, identifier="approve")
    world.deliver("check_run", **button, identifier="approve")
    world.work()
    assert list(world.dag_runs.started) == [(DAG, world.run_id())]
    world.end(Status.INFRA_FAILURE, "node b is unreachable")
    world.settle()
    world.deliver("check_run", **button, identifier="rerun")
    world.deliver("check_run", **button, identifier="rerun")
    world.settle()
    assert len(world.dag_runs.started) == 2
    assert world.check(2)["status"] == "queued"


def test_all_checks_of_a_commit_run_again_on_request(world: World) -> None:
    """GitHub's "Re-run all checks" sends check_suite, which does not name the check run."""
    suite = {"action": "rerequested", "suite": 5, "head_sha": world.sha, "app": "tipcflow", "sender": "maintainer"}
    world.deliver("check_suite", **suite)
    world.settle()
    assert world.dag_runs.started == {}, "the commit has no run"
    world.pull_request("opened")
    world.work()
    world.end(Status.INFRA_FAILURE, "node b is unreachable")
    world.settle()
    world.deliver("check_suite", **{**suite, "app": "other"})
    world.deliver("check_suite", **{**suite, "sender": "author"})
    world.settle()
    assert len(world.dag_runs.started) == 1, "another App, or a user without write permission"
    world.deliver("check_suite", **suite)
    world.settle()
    assert len(world.dag_runs.started) == 2
    assert world.check(2)["status"] == "queued"


def test_new_base_branch_cancels_and_runs_again(world: World) -> None:
    world.pull_request("opened")
    world.work()
    world.begin()
    world.pull_request("edited", old_base="dev")
    world.work()
    assert world.dag_runs.stopped == [(DAG, world.run_id())]
    assert len(world.dag_runs.started) == 2
    assert world.check(2)["status"] == "queued"
