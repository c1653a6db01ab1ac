"""Attempts whose chains a command names, that begin again, or that fail for an unexpected reason."""

from importlib import import_module
from typing import Any

import pytest
from tests.support.github.world import CHAIN, World
from tests.support.stories import a_run, record_run

from tipcflow.domain import Status, dag_id_of
from tipcflow.store.github.attempts import PullAttempt

pytestmark = pytest.mark.slow

DAG = dag_id_of(CHAIN)


def add_chain(world: World, name: str) -> None:
    """A second chain of the suite, with a copy of the first one's params file."""
    for root in (world.configs / "chains" / "toy", world.suite / "test_tipc" / "configs"):
        source = next(root.glob("*/train_infer_python.txt"))
        target = root / f"{name}.txt"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source.read_text())
    world.push()


def finish_chains(world: World, statuses: dict[str, Status], *, attempt: int = 1) -> None:
    found = world.store.pulls.get(("o/r", 7, world.sha, attempt))
    assert found
    for chain in found.chains:
        record_run(world.store, a_run(chain.run, chain=chain.chain, status=None))
        world.store.runs.finish(chain.run, statuses[chain.chain], "", world.store.now())


def test_a_commit_that_is_the_head_again_runs_again(world: World) -> None:
    first = world.sha
    head = dict(world.github.pull)
    world.pull_request("opened")
    world.work()
    world.begin()
    world.push()
    world.pull_request("synchronize")
    world.work()
    world.github.pull = head
    world.pull_request("synchronize")
    world.work()
    assert (DAG, world.run_id(2, sha=first)) in world.dag_runs.started


def test_named_chains_do_not_hide_the_result_of_the_others(world: World) -> None:
    """An author may name chains; a later pass of these does not count for the chain that failed."""
    add_chain(world, "other/train_infer_python")
    world.pull_request("opened")
    world.work()
    assert sorted(dag for dag, _ in world.dag_runs.started) == [dag_id_of("toy/other/train_infer_python"), DAG]
    finish_chains(world, {CHAIN: Status.REGRESSION, "toy/other/train_infer_python": Status.PASS})
    world.settle()
    assert world.check()["conclusion"] == "failure"
    world.comment("/tipc run toy/other/train_infer_python", sender="author")
    world.work()
    assert (dag_id_of("toy/other/train_infer_python"), world.run_id(2)) in world.dag_runs.started
    assert (DAG, world.run_id(2)) not in world.dag_runs.started
    finish_chains(world, {"toy/other/train_infer_python": Status.PASS}, attempt=2)
    world.settle()
    check = world.check(2)
    assert check["conclusion"] == "failure"
    assert "1 regression, 1 pass" in check["output"]["title"]
    assert "attempt 1: " in check["output"]["summary"]


def test_only_named_chains_prove_nothing_about_the_others(world: World) -> None:
    world.pull_request("opened", draft=True)
    world.work()
    assert not world.dag_runs.started
    world.comment(f"/tipc run {CHAIN}", sender="author")
    world.work()
    world.end()
    world.settle()
    (check,) = [one for one in world.github.checks if one["output"]["title"].startswith("1 pass")]
    assert (check["conclusion"], check["output"]["title"]) == (
        "action_required", "1 pass; the affected chains did not run",
    )  # fmt: skip


def test_command_with_a_mistyped_chain_starts_none_and_is_forgotten(world: World) -> None:
    """A typo must neither hide that a named chain did not run, nor fail the commit after the corrected command."""
    world.pull_request("opened")
    world.work()
    world.end(Status.INFRA_FAILURE, "node b is unreachable")
    world.comment(f"/tipc run {CHAIN} toy/typo/*")
    world.settle()
    assert len(world.dag_runs.started) == 1
    assert world.check(2)["conclusion"] == "action_required"
    assert "command: no chain matches toy/typo/" in world.check(2)["output"]["summary"]
    world.comment(f"/tipc run {CHAIN}")
    world.work()
    finish_chains(world, {CHAIN: Status.PASS}, attempt=3)
    world.settle()
    assert world.check(3)["conclusion"] == "success", world.check(3)["output"]


def test_failed_selection_of_the_change_stays_after_named_chains(world: World) -> None:
    world.repository = world.repository.model_copy(update={"chains": ("typo/**",)})
    world.pull_request("opened")
    world.settle()
    world.repository = world.repository.model_copy(update={"chains": ("**",)})
    world.comment(f"/tipc run {CHAIN}")
    world.work()
    finish_chains(world, {CHAIN: Status.PASS}, attempt=2)
    world.settle()
    assert world.check(2)["conclusion"] == "action_required"


def test_check_names_globs_without_a_chain_and_links_all_chains(world: World) -> None:
    add_chain(world, "other/train_infer_python")
    rules = world.repository.selection.model_copy(update={"globs": {"docs/**": ("toy/typo/*",)}})
    world.repository = world.repository.model_copy(update={"selection": rules})
    world.pull_request("opened")
    world.settle()
    check = world.check()
    assert "### Selection" in check["output"]["summary"]
    assert "no chain matches toy/typo/" in check["output"]["summary"]
    assert check["details_url"] == "https://airflow.test/certification/pulls?repository=o%2Fr&number=7"


def test_check_without_candidate_chains_requires_action(world: World) -> None:
    world.repository = world.repository.model_copy(update={"chains": ("typo/**",)})
    world.pull_request("opened")
    world.settle()
    assert world.check()["conclusion"] == "action_required"
    assert "no chain of configs/chains/toy may run for o/r" in world.check()["output"]["summary"]


def test_an_unexpected_error_of_one_attempt_does_not_stop_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = import_module("tipcflow_operators.pull_request.start")
    work = import_module("tipcflow_operators.pull_request.work")
    genuine = start.start_attempt

    def broken(attempt: PullAttempt, *rest: Any, **named: Any) -> str:
        if attempt.number == 7:
            raise TypeError("https://bot:secret@host: unhashable")
        return str(genuine(attempt, *rest, **named))

    monkeypatch.setattr(work, "start_attempt", broken)
    monkeypatch.setattr(start, "RETRY_S", 0.0)
    world.pull_request("opened")
    world.work()
    old = world.sha
    head = world.push()
    world.deliver(
        "merge_group",
        action="checks_requested",
        head_sha=head,
        head_ref="refs/heads/gh-readonly-queue/main/x",
        base_ref="refs/heads/main",
        base_sha=world.base,
    )
    world.work()
    assert list(world.dag_runs.started) == [(DAG, world.run_id(sha=head, number=0))]
    assert "secret" not in "".join(world.lines)
    monkeypatch.setattr(start, "GIVE_UP_S", -1.0)
    world.settle()
    assert world.check(sha=old)["conclusion"] == "action_required"
