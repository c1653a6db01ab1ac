"""Builds, runs and variants of the matrix, on both databases."""

from collections.abc import Callable

import pytest
from tests.support.stories import T0, TRAIN, a_run, record_run

from tipcflow.domain import Status
from tipcflow.store import Store

DAY = 86_400


def put(store: Store, day: int, framework: str, status: Status | None = Status.PASS, **fields: object) -> None:
    ended = {"status": status, "ended_at": T0 + day * DAY + 9} if status else {}
    known = {"chain": "s/alpha/a", "framework": framework, "created_at": T0 + day * DAY}
    store.runs.create(a_run(f"r{day:02}", **(known | ended | fields)))


def test_newest_builds_are_listed_first(store: Store) -> None:
    assert store.matrix.builds(5) == []
    put(store, 1, "")
    assert store.matrix.builds(5) == []
    put(store, 2, "paddle 2")
    put(store, 3, "paddle 1")
    put(store, 4, "paddle 3")
    put(store, 5, "paddle 2")
    assert store.matrix.builds(5) == ["paddle 2", "paddle 3", "paddle 1"]
    assert store.matrix.builds(2) == ["paddle 2", "paddle 3"]


def test_newest_runs_of_builds_are_returned(store: Store) -> None:
    put(store, 1, "paddle 1")
    put(store, 2, "paddle 2")
    put(store, 3, "paddle 1", Status.FAILED)
    put(store, 4, "paddle 1", None)
    put(store, 5, "paddle 1", trigger="confirm")
    put(store, 6, "paddle 1", chain="s/beta/a")
    found = store.matrix.of_builds(["s/alpha/a"], ["paddle 1"])
    assert [(run.run, run.status, run.framework) for run in found] == [
        ("r03", Status.FAILED, "paddle 1"), ("r01", Status.PASS, "paddle 1"),
    ]  # fmt: skip
    assert store.matrix.of_builds([], ["paddle 1"]) == []


@pytest.mark.parametrize("kind", ["sqlite"])
def test_runs_of_builds_are_searched_by_chain(
    store: Store, plan_of: Callable[[Callable[[], object]], list[str]]
) -> None:
    """All runs of twelve builds are as many as there are chains, times twelve."""
    plan = plan_of(lambda: store.matrix.of_builds(["s/alpha/a", "s/beta/a"], ["paddle 1", "paddle 2"]))
    assert plan[0].startswith("SEARCH runs USING INDEX ix_runs_chain_")


def test_steps_of_variants_have_statuses(store: Store) -> None:
    run = record_run(store)
    store.steps.set(run.id, TRAIN, Status.FAILED)
    found = store.matrix.variants([run.id, "other"])
    assert {each.variant for each in found} == {"norm_train_cpu"}
    assert sorted(each.status for each in found) == [Status.FAILED, Status.PASS]
