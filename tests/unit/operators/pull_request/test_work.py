"""Deliveries become runs and reports: each run once, in every order, after every failure."""

from typing import Any

import pytest
from tests.support.github.world import CHAIN, World
from tests.support.stories import a_run, record_run

from tipcflow.domain import Status, dag_id_of

pytestmark = pytest.mark.slow

DAG = dag_id_of(CHAIN)


def test_an_opened_pull_request_runs_once_and_gets_its_verdict(world: World) -> None:
    world.pull_request("opened")
    world.work()
    assert list(world.dag_runs.started) == [(DAG, world.run_id())]
    (conf,) = world.dag_runs.started.values()
    assert conf == {
        "mode": "lite_train_lite_infer",
        "suite_ref": world.sha,
        "cluster": "local",
        "policy": "pr",
        "base": "main",
    }
    assert world.check()["status"] == "queued"
    world.end(Status.REGRESSION, "loss is 12 % higher")
    world.settle()
    assert (world.check()["status"], world.check()["conclusion"]) == ("completed", "failure")
    (comment,) = world.github.comments
    assert "loss is 12 % higher" in comment["body"]
    assert world.store.pulls.living() == []


def test_a_repeated_delivery_is_one_run(world: World) -> None:
    """GitHub sends the event again with another id; two events of one push name the same head."""
    for _ in range(3):
        world.pull_request("opened")
    world.pull_request("synchronize")
    world.settle()
    assert (world.dag_runs.starts, len(world.github.checks)) == (1, 1)
    assert len(world.store.pulls.of("o/r", 7)) == 1


def test_newer_push_cancels_only_the_older_run(world: World) -> None:
    world.pull_request("opened")
    world.work()
    old = world.sha
    world.begin()
    new = world.push()
    world.pull_request("synchronize")
    world.work()
    assert world.dag_runs.stopped == [(DAG, world.run_id(sha=old))]
    assert (DAG, world.run_id(sha=new)) in world.dag_runs.started
    world.store.runs.finish(world.run_of(sha=old), Status.CANCELLED, "stopped by a user", world.store.now())
    world.end()
    world.settle()
    assert world.check(sha=old)["conclusion"] == "cancelled"
    assert world.check(sha=new)["conclusion"] == "success"


def test_an_old_delivery_after_a_newer_push_starts_nothing(world: World) -> None:
    """Out of order: the delivery of the older head comes last."""
    old = world.sha
    new = world.push()
    world.pull_request("synchronize")
    world.pull_request("opened", head_sha=old)
    world.settle()
    assert list(world.dag_runs.started) == [(DAG, world.run_id(sha=new))]


@pytest.mark.parametrize("is_open", [True, False])
def test_push_is_certified_although_github_still_returns_the_old_state(world: World, is_open: bool) -> None:
    """A read may lag behind the event; an ignored event would leave the new head without a check for ever."""
    world.pull_request("opened")
    world.work()
    old = dict(world.github.pull)
    new = world.push()
    world.pull_request("synchronize")
    current = dict(world.github.pull)
    world.github.pull = old if is_open else {**current, "state": "closed"}
    world.work()
    assert world.run_id(sha=new) not in {run for _, run in world.dag_runs.started}
    world.github.pull = current
    world.settle()
    assert world.run_id(sha=new) in {run for _, run in world.dag_runs.started}


def test_a_cancelled_run_that_never_began_is_cancelled_not_lost(world: World) -> None:
    world.pull_request("opened")
    world.work()
    world.pull_request("closed")
    world.settle()
    assert world.dag_runs.stopped == [(DAG, world.run_id())]
    assert world.check()["conclusion"] == "cancelled"
    assert world.store.pulls.living() == []


def test_a_stop_that_fails_is_repeated(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tipcflow_operators.pull_request.start.RETRY_S", 0.0)
    world.pull_request("opened")
    world.work()
    world.begin()
    world.dag_runs.away = True
    world.pull_request("closed")
    world.work()
    assert world.dag_runs.stopped == []
    world.dag_runs.away = False
    world.work()
    assert world.dag_runs.stopped == [(DAG, world.run_id())]


def test_merge_groups_are_not_cancelled_by_a_newer_one(world: World) -> None:
    heads = [world.push(), world.push()]
    for head in heads:
        world.deliver(
            "merge_group",
            action="checks_requested",
            head_sha=head,
            head_ref=f"refs/heads/gh-readonly-queue/main/{head[:6]}",
            base_ref="refs/heads/main",
            base_sha=world.base,
        )
        world.work()
        world.begin(sha=head, number=0)
    assert len(world.dag_runs.started) == 2
    assert world.dag_runs.stopped == []


def test_a_fork_waits_for_the_approval_of_exactly_its_commit(world: World) -> None:
    world.push(fork=True)
    world.pull_request("opened")
    world.work()
    assert world.dag_runs.started == {}
    assert world.check()["conclusion"] == "action_required"
    assert [one["identifier"] for one in world.check()["actions"]] == ["approve"]
    world.comment(f"/tipc approve {world.sha}", sender="author")
    world.comment("/tipc run")
    world.comment("/tipc approve " + "0" * 40)
    world.work()
    assert world.dag_runs.started == {}
    world.comment(f"/tipc approve {world.sha}")
    world.settle()
    assert list(world.dag_runs.started) == [(DAG, world.run_id())]
    assert world.check()["status"] == "queued"
    world.push(fork=True)
    world.pull_request("synchronize")
    world.settle()
    assert len(world.dag_runs.started) == 1
    assert world.check()["conclusion"] == "action_required"


def test_a_pull_request_cannot_change_the_policy_of_its_run(world: World) -> None:
    world.push("configs/repositories/r.yaml", text="policy: lenient\nforks: never\n")
    world.pull_request("opened")
    world.settle()
    (conf,) = world.dag_runs.started.values()
    assert conf["policy"] == "pr"


def test_an_unconcerned_change_gets_a_check_too(world: World) -> None:
    world.push("docs/intro.md")
    world.pull_request("opened")
    world.settle()
    assert world.dag_runs.started == {}
    assert (world.check()["status"], world.check()["conclusion"]) == ("completed", "skipped")
    assert world.store.pulls.living() == []


def test_commands_get_an_immediate_reply(world: World) -> None:
    world.pull_request("opened")
    world.comment("/tipc runn")
    world.comment("/tipc help")
    world.comment("/tipc cancel", sender="stranger")
    world.comment("an ordinary comment about /tipc run")
    world.deliver(
        "issue_comment",
        action="created",
        number=7,
        comment=5,
        body="/tipc run",
        sender="tipcflow[bot]",
        pull_request="x",
    )
    world.work()
    assert world.github.reactions == [(1001, "-1"), (1002, "+1"), (1003, "-1")]
    answers = [one["body"] for one in world.github.comments]
    assert len(answers) == 3
    assert "`/tipc run [whole] [CHAIN…]`" in answers[0]
    assert world.dag_runs.starts == 1
    assert world.dag_runs.stopped == []


def test_an_outage_of_github_loses_and_doubles_nothing(world: World) -> None:
    """GitHub fails for reads and writes during the whole run; the report is delivered later."""
    world.pull_request("opened")
    world.github.faults = [("*", 502, {}, False)] * 40
    world.work()
    assert world.dag_runs.started == {}, "the head is unknown, so nothing starts"
    world.github.faults = []
    world.make_due()
    world.work()
    world.github.faults = [("*", 502, {}, False)] * 200
    world.end(Status.FAILED, "the loss is nan")
    for _ in range(4):
        world.make_due()
        world.work()
    assert world.check()["status"] == "queued"
    assert world.store.messages.waiting()
    world.github.faults = []
    world.settle()
    assert world.check()["conclusion"] == "failure"
    assert len(world.github.comments) == 1
    assert world.store.messages.waiting() == []


def test_a_lost_response_doubles_neither_check_nor_reply(world: World) -> None:
    """The write has its effect, but the response is lost."""
    world.comment("/tipc help")
    world.pull_request("opened")
    world.github.faults = [("POST", 502, {}, True)] * 3
    for _ in range(6):
        world.make_due()
        world.work()
    assert len(world.github.checks) == 1
    assert len(world.github.comments) == 1
    assert len(world.github.reactions) == 1


def test_a_rate_limit_is_waited_for_without_a_worker(world: World) -> None:
    world.pull_request("opened")
    world.github.faults = []
    world.work()
    world.end(Status.FAILED, "the loss is nan")
    world.make_due()
    world.github.faults = [("GET", 403, {"Retry-After": "900"}, False)]
    world.work()
    (first, *_) = world.store.messages.waiting()
    assert first.due_at - world.store.now() > 800
    assert world.check()["status"] == "queued"
    world.settle()
    assert world.check()["conclusion"] == "failure"


def test_an_unresponsive_airflow_is_queried_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tipcflow_operators.pull_request.start.RETRY_S", 0.0)
    world.dag_runs.away = True
    world.pull_request("opened")
    world.work()
    assert (world.dag_runs.started, world.check()["status"]) == ({}, "queued")
    world.dag_runs.away = False
    world.settle()
    assert list(world.dag_runs.started) == [(DAG, world.run_id())]


def test_a_deleted_dag_run_is_not_a_pass(world: World) -> None:
    world.pull_request("opened")
    world.work()
    world.dag_runs.started.clear()
    world.settle()
    assert world.check()["conclusion"] == "action_required"


def test_a_process_that_dies_between_two_steps_changes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chains are started, but the process dies before it records that."""
    world.pull_request("opened")
    real = type(world.store.pulls).started
    calls = []

    def dies(self: object, attempt: object, chains: object, body: object, *, state: str) -> None:
        calls.append(state)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(self, attempt, chains, body, state=state)  # type: ignore[arg-type]

    monkeypatch.setattr(type(world.store.pulls), "started", dies)
    with pytest.raises(KeyboardInterrupt):
        world.work()
    world.settle()
    assert world.dag_runs.starts == 2, "the same DAG run was requested again"
    assert list(world.dag_runs.started) == [(DAG, world.run_id())]
    assert world.check()["status"] == "queued"


def test_200_deliveries_of_20_pull_requests_are_20_runs(world: World) -> None:
    for number in range(1, 21):
        for _ in range(10):
            world.pull_request("opened", number=number)
    for _ in range(6):
        world.work()
    assert world.store.outbox.waiting() == 0
    assert len(world.dag_runs.started) == world.dag_runs.starts == 20
    shown = {one["external_id"] for one in world.github.checks}
    assert shown == {f"{number}/1" for number in range(1, 21)}
    assert len(world.github.checks) == 20


def test_deliveries_are_handled_between_the_starts_of_many_pull_requests(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starts may take minutes: what is closed meanwhile does not start, and a command gets its reaction."""
    for number in (8, 9, 7):
        world.pull_request("opened", number=number)
    begin = world.dag_runs.start
    reactions: list[int] = []

    def start(dag_id: str, run_id: str, *rest: Any) -> None:
        reactions.append(len(world.github.reactions))
        begin(dag_id, run_id, *rest)
        if len(reactions) == 1:
            world.comment("/tipc help")
            world.pull_request("closed")

    monkeypatch.setattr(world.dag_runs, "start", start)
    world.work()
    assert {run for _, run in world.dag_runs.started} == {world.run_id(number=number) for number in (8, 9)}
    assert reactions == [0, 1]


def test_an_accepted_metric_is_a_baseline_with_its_user_and_reason(world: World) -> None:
    world.pull_request("opened")
    world.work()
    run = world.run_of()
    record_run(world.store, a_run(run, chain=CHAIN))
    world.comment("/tipc accept loss because the loss function changed")
    world.comment("/tipc accept no_such_metric because", sender="maintainer")
    world.comment("/tipc accept unknown because of this")
    world.comment("/tipc accept loss because I want to", sender="author")
    world.settle()
    known = world.store.runs.get(run)
    decisions = world.store.baselines.decisions(CHAIN, known.mode, known.environment)
    assert {(one.metric, one.who, one.why) for one in decisions} == {
        ("loss", "maintainer", "the loss function changed")
    }
    assert [reaction for _, reaction in world.github.reactions] == ["+1", "-1", "-1", "-1"]
    answers = [one["body"] for one in world.github.comments]
    assert sum("Accepted" in one for one in answers) == 1
    assert sum("has the metric `unknown`" in one for one in answers) == 1
