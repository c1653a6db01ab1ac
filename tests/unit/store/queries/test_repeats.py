"""Equal runs: what makes them equal, which outcomes count."""

import pytest
from tests.support.stories import T0, a_run

from tipcflow.domain import Status
from tipcflow.store import Store
from tipcflow.store.queries.repeats import Repeated

DAY = 86_400


def put(store: Store, number: int, status: Status | None = Status.PASS, **fields: object) -> None:
    known = {"chain": "s/alpha/a", "framework": "p 1", "suite_commit": "c", "created_at": T0 + number * DAY}
    ended = {"status": status, "ended_at": T0 + number * DAY + 60} if status else {}
    store.runs.create(a_run(f"r{number:02}", **(known | ended | fields)))


def test_the_rarer_outcome_disagrees(store: Store) -> None:
    for number, status in enumerate((Status.PASS, Status.FAILED, Status.IMPROVEMENT, Status.PASS)):
        put(store, number, status)
    put(store, 5, Status.REGRESSION, framework="p 2")
    put(store, 6, Status.REGRESSION, framework="p 2")
    assert store.repeats.chains(0) == [Repeated("s/alpha/a", groups=2, mixed=1, runs=6, disagreeing=1)]
    assert store.repeats.mixed(0, ["s/beta/a"]) == []
    assert [run.id for run in store.repeats.mixed(0, ["s/alpha/a"])] == ["r00", "r01", "r02", "r03"]


@pytest.mark.parametrize(
    "fields",
    [
        {"framework": "p 2"},
        {"framework": ""},
        {"suite_commit": "d"},
        {"suite_sha256": "d"},
        {"mode": "other"},
        {"environment": "gpu"},
        {"chain": "s/beta/a"},
        {"trigger": "confirm"},
        {"status": Status.INFRA_FAILURE},
        {"status": Status.CANCELLED},
        {"status": None, "ended_at": None},
    ],
)
def test_runs_of_other_conditions_are_not_compared(store: Store, fields: dict[str, object]) -> None:
    put(store, 1)
    put(store, 2, **({"status": Status.FAILED} | fields))
    assert (store.repeats.chains(0), store.repeats.mixed(0, ["s/alpha/a", "s/beta/a"])) == ([], [])


def test_older_runs_are_left_out(store: Store) -> None:
    put(store, 1)
    put(store, 2, Status.FAILED)
    assert store.repeats.chains(T0 + 2 * DAY) == []


def test_runs_with_an_equal_run_are_counted_by_node(store: Store) -> None:
    put(store, 1, nodes=("a",))
    put(store, 2, Status.FAILED, nodes=("b",))
    put(store, 3, nodes=("a",))
    put(store, 4, nodes=("a",), suite_commit="d" * 40)
    put(store, 5, Status.INFRA_FAILURE, nodes=("a",))
    assert sorted(store.repeats.repeated_by_node(0)) == [(("a",), 2), (("b",), 1)]


def test_outcomes_of_nodes_are_counted(store: Store) -> None:
    put(store, 1, nodes=("a", "b"))
    put(store, 2, Status.INFRA_FAILURE, nodes=("a", "b"))
    put(store, 3, Status.INFRA_FAILURE, nodes=("a", "b"))
    put(store, 4, None, nodes=("a", "b"))
    assert sorted(store.repeats.by_node(0)) == [
        (("a", "b"), Status.INFRA_FAILURE, 2), (("a", "b"), Status.PASS, 1),
    ]  # fmt: skip
