"""The state of chains: which run is it, what was the last green one, where did the problem begin."""

import pytest
from tests.support.stories import T0, TRAIN, a_run, record_run

from tipcflow.domain import Status
from tipcflow.domain.run.allocation_wait import AllocationWaitDocument
from tipcflow.domain.run_documents import MergeBaseDocument
from tipcflow.store import Store
from tipcflow.store.queries.states import _STATES

V100, A100 = "gpu/v100", "gpu/a100"
DAY = 86_400


def put(store: Store, number: int, status: Status | None = Status.PASS, **fields: object) -> str:
    """Store a run that began on day `number`."""
    known = {
        "chain": "s/alpha/a",
        "environment": V100,
        "created_at": T0 + number * DAY,
        "framework": f"p {number}",
    }
    ended = {"status": status, "ended_at": T0 + number * DAY + 60} if status else {}
    run = a_run(f"r{number:02}", **(known | ended | fields))
    store.runs.create(run)
    return run.id


def states(store: Store) -> list[tuple[str, str]]:
    return [(line.chain, line.run) for line in store.states.lines()]


def test_empty_database_has_no_states(store: Store) -> None:
    assert store.states.lines() == []
    assert store.states.reds([]) == []
    assert store.states.active(5) == ([], 0)


def test_every_chain_mode_and_environment_has_a_newest_run(store: Store) -> None:
    put(store, 1)
    put(store, 2, Status.FAILED)
    put(store, 3, None)
    put(store, 4, environment=A100)
    put(store, 5, mode="whole_train_whole_infer")
    put(store, 6, chain="t/beta/a")
    assert states(store) == [
        ("s/alpha/a", "r04"), ("s/alpha/a", "r02"), ("s/alpha/a", "r05"), ("t/beta/a", "r06"),
    ]  # fmt: skip


@pytest.mark.parametrize("fields", [{"trigger": "confirm"}, {"trigger": "bisect"}, {"status": Status.CANCELLED}])
def test_side_runs_and_cancelled_runs_are_not_the_state(store: Store, fields: dict[str, object]) -> None:
    put(store, 1)
    put(store, 2, **({"status": Status.FAILED} | fields))
    assert states(store) == [("s/alpha/a", "r01")]


def test_a_run_of_a_change_is_not_the_state(store: Store) -> None:
    put(store, 1)
    store.documents.put(put(store, 2, Status.FAILED), MergeBaseDocument(commit="c"))
    assert states(store) == [("s/alpha/a", "r01")]
    put(store, 3, chain="only/changes/a")
    store.documents.put("r03", MergeBaseDocument(commit="c"))
    assert states(store) == [("s/alpha/a", "r01")]


def test_the_run_where_a_problem_began_is_found(store: Store) -> None:
    put(store, 1)
    put(store, 2, Status.IMPROVEMENT)
    put(store, 3, Status.INFRA_FAILURE)
    put(store, 4, Status.UNCONFIRMED)
    put(store, 5, Status.FAILED, trigger="bisect")
    put(store, 6, Status.INFRA_FAILURE)
    put(store, 7, Status.REGRESSION)
    (red,) = store.states.reds(store.states.lines())
    assert (red.run.id, red.good and red.good.id, red.first.id) == ("r07", "r02", "r04")


def test_a_chain_that_never_passed_has_no_green_run(store: Store) -> None:
    put(store, 1, Status.FAILED)
    put(store, 2, Status.CONFIG_ERROR)
    (red,) = store.states.reds(store.states.lines())
    assert (red.run.id, red.good, red.first.id) == ("r02", None, "r01")


def test_many_reds_are_found_at_once(store: Store) -> None:
    for number in range(1, 8):
        put(store, number, Status.FAILED, chain=f"s/m{number}/a")
    assert [red.run.id for red in store.states.reds(store.states.lines())] == [f"r{n:02}" for n in range(1, 8)]


def test_a_run_that_ended_before_its_environment_was_known(store: Store) -> None:
    """It belongs to the chain's runs on that cluster, and shows neither a new chain nor an unknown build."""
    put(store, 1)
    put(store, 2, Status.FAILED, environment="", framework="")
    put(store, 3, Status.FAILED, environment="", framework="")
    (line,) = store.states.lines()
    assert (line.run, line.environment, line.framework) == ("r03", V100, "p 1")
    (red,) = store.states.reds([line])
    assert (red.good and red.good.id, red.first.id) == ("r01", "r02")
    put(store, 4)
    assert states(store) == [("s/alpha/a", "r04")]
    put(store, 5, Status.FAILED, environment="", cluster="elsewhere")
    assert sorted(states(store)) == [("s/alpha/a", "r04"), ("s/alpha/a", "r05")]


def test_running_and_queued_runs_are_listed(store: Store) -> None:
    run = record_run(store, a_run("done", created_at=T0))
    store.runs.create(a_run("going", created_at=T0 + 100), store.plans.get(run.id))
    store.attempts.open("going", TRAIN, ["node-a"], T0 + 110)
    store.runs.create(a_run("queued", created_at=T0 + 200, chain="s/new/a"))
    store.queue.join("queued", [("node-a", 0)], owner="test", ttl_s=60)
    active, total = store.states.active(5)
    assert total == 2
    assert [(each.run.id, each.started_at, each.waits, each.usual_s) for each in active] == [
        ("queued", None, True, None), ("going", T0 + 110, False, 20.0),
    ]  # fmt: skip
    assert [each.run.id for each in store.states.active(1)[0]] == ["queued"]


def test_runs_that_wait_for_an_allocation_by_slurm_are_queued(store: Store) -> None:
    now = store.now()
    for name, until in (("slurm", now + 600), ("died", now - 10)):
        store.runs.create(a_run(name, created_at=now - 100))
        store.documents.put(name, AllocationWaitDocument(since=now - 90, until=until))
    store.runs.create(a_run("slots", created_at=now - 100))
    store.queue.join("slots", [("node-a", 0)], owner="test", ttl_s=60)
    active, _ = store.states.active(5)
    assert {each.run.id: each.waits for each in active} == {"slurm": True, "died": False, "slots": True}
    assert store.queue.waiting() == {"slurm", "slots"}
    store.documents.remove("slurm", AllocationWaitDocument)
    assert store.queue.waiting() == {"slots"}


def test_the_query_reads_no_runs(store: Store) -> None:
    """The cost depends on the number of lines, not on the number of runs."""
    assert " runs" not in str(_STATES)
