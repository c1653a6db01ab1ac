"""GitHub is away from before the start of a run: the run starts, and reports are sent later, once, in order."""

from typing import Any

import pytest
from tests.support.github.world import CHAIN, World

from tipcflow.domain import InfraError, Status, dag_id_of
from tipcflow.github.client import Client

pytestmark = pytest.mark.slow

DAG = dag_id_of(CHAIN)
HOUR_S = 3600.0


def sent(world: World, sha: str) -> list[tuple[str, str, Any]]:
    """(Verb, status, conclusion) of the requests that wrote the check run of a commit."""
    mine = [one["id"] for one in world.github.checks if one["head_sha"] == sha]
    return [
        (verb, body["status"], body.get("conclusion"))
        for verb, path, body in world.github.log
        if (verb == "POST" and path.endswith("/check-runs") and body["head_sha"] == sha)
        or (verb == "PATCH" and any(path.endswith(f"/check-runs/{one}") for one in mine))
    ]


def group(world: World) -> str:
    """A merge group, whose chains are selected without GitHub; returns its head."""
    head = world.push()
    world.deliver(
        "merge_group",
        action="checks_requested",
        head_sha=head,
        head_ref=f"refs/heads/gh-readonly-queue/main/{head[:6]}",
        base_ref="refs/heads/main",
        base_sha=world.base,
    )
    return head


def test_pull_request_waits_for_github_and_is_certified_afterwards(world: World) -> None:
    """Without GitHub it is unknown which files changed, and whose code it is: nothing starts."""
    world.github.away = True
    world.pull_request("opened")
    world.comment("/tipc help")
    for _ in range(4):
        world.make_due()
        world.work()
    assert (world.dag_runs.started, world.github.log) == ({}, [])
    assert world.github.lost > 0
    world.github.away = False
    world.settle()
    assert list(world.dag_runs.started) == [(DAG, world.run_id())]
    world.end(Status.REGRESSION, "loss is 12 % higher")
    world.settle()
    world.settle()
    # Queued, then queued with the expected time; the verdict once, and last.
    first, *updates, last = sent(world, world.sha)
    assert (first, last) == (("POST", "queued", None), ("PATCH", "completed", "failure"))
    assert set(updates) <= {("PATCH", "queued", None)}
    assert [("loss is 12 %" in one["body"], "/tipc cancel" in one["body"]) for one in world.github.comments] == [
        (False, True),
        (True, False),
    ]
    assert world.store.messages.waiting() == []


def test_runs_of_merge_groups_start_and_end_without_github(world: World) -> None:
    world.github.away = True
    heads = [group(world), group(world)]
    world.settle()
    assert len(world.dag_runs.started) == 2
    for head, status in zip(heads, (Status.PASS, Status.FAILED), strict=True):
        world.end(status, sha=head, number=0)
        world.settle()
    assert world.github.log == []
    world.github.away = False
    world.settle()
    world.settle()
    # What was coalesced is sent as its last state alone, the older group first.
    assert [sent(world, head) for head in heads] == [
        [("POST", "completed", "success")],
        [("POST", "completed", "failure")],
    ]
    assert [one["head_sha"] for one in world.github.checks] == heads
    assert world.store.messages.waiting() == []


def test_response_of_the_last_report_is_lost_in_an_outage(world: World) -> None:
    """GitHub has the check run, but the response is lost: the check run is found, not created again."""
    world.github.away = True
    head = group(world)
    world.settle()
    world.end(Status.PASS, sha=head, number=0)
    world.github.away = False
    world.github.faults = [("POST", 502, {}, True)]
    world.settle()
    assert [one["conclusion"] for one in world.github.checks] == ["success"]
    assert world.store.messages.waiting() == []


@pytest.mark.parametrize(("hours", "starts"), [(0.5, 1), (5.0, 1), (80.0, 0)])
def test_selection_is_repeated_after_an_outage(
    world: World, monkeypatch: pytest.MonkeyPatch, hours: float, starts: int
) -> None:
    """The delivery was handled, but the list of changed files cannot be read for hours; days are too long."""
    clock = world.store.now()
    monkeypatch.setattr(world.store, "now", lambda: clock)

    def fails(self: Client, number: int, expected: int) -> tuple[tuple[str, ...], bool]:
        raise InfraError("GitHub does not respond", passing=True)

    with monkeypatch.context() as outage:
        outage.setattr(Client, "changed_paths", fails)
        world.pull_request("opened")
        world.work()
        clock += hours * HOUR_S
        world.work()
        assert world.dag_runs.started == {}
    clock += 60.0
    world.settle()
    assert world.dag_runs.starts == starts
    (check,) = world.github.checks
    assert check["status"] == ("queued" if starts else "completed")
    assert check.get("conclusion") == (None if starts else "action_required")
