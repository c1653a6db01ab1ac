"""Equal runs: what makes them equal, which outcomes count."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable

import pytest
from tests.support.stories import T0, a_run

from tipcflow.domain import Run, Status
from tipcflow.store import Store
from tipcflow.store.queries.repeats import Repeated

DAY = 86_400
OUTCOMES = (Status.PASS, Status.IMPROVEMENT, Status.REGRESSION, Status.UNCONFIRMED, Status.FAILED)
ENDS = (*OUTCOMES, Status.INFRA_FAILURE, Status.CONFIG_ERROR, Status.CANCELLED)


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
    assert sorted(store.repeats.repeated_by_node(0, ["s/alpha/a"])) == [
        ("local", ("a",), 2), ("local", ("b",), 1),
    ]  # fmt: skip
    assert store.repeats.repeated_by_node(T0 + 3 * DAY, ["s/alpha/a"]) == []
    assert store.repeats.repeated_by_node(0, ["s/beta/a"]) == store.repeats.repeated_by_node(0, []) == []


def test_outcomes_of_nodes_are_counted(store: Store) -> None:
    put(store, 1, nodes=("a", "b"))
    put(store, 2, Status.INFRA_FAILURE, nodes=("a", "b"))
    put(store, 3, Status.INFRA_FAILURE, nodes=("a", "b"))
    put(store, 4, None, nodes=("a", "b"))
    put(store, 5, nodes=("a", "b"), cluster="other")
    assert sorted(store.repeats.by_node(0)) == [
        ("local", ("a", "b"), Status.INFRA_FAILURE, 2), ("local", ("a", "b"), Status.PASS, 1),
        ("other", ("a", "b"), Status.PASS, 1),
    ]  # fmt: skip


def test_random_runs_are_counted_as_by_comparing_each_with_each(store: Store) -> None:
    rng = random.Random(16)
    for number in range(160):
        status = rng.choice([*Status.__members__.values()])
        put(
            store,
            number,
            status if status in ENDS else None,
            chain=f"s/{rng.choice('ab')}/a",
            mode=rng.choice("mn"),
            environment=rng.choice(("", "gpu")),
            framework=rng.choice(("", "p 1", "p 2")),
            trigger=rng.choice(("cli", "cli", "weekly", "bisect")),
            nodes=tuple(rng.sample(("x", "y", "z"), rng.randint(1, 2))),
            cluster=rng.choice(("local", "other")),
        )
    since = T0 + 20 * DAY
    groups = [group for group in _groups(store, since) if len(group) > 1]
    nodes = Counter((run.cluster, run.nodes) for group in groups for run in group)
    counted = store.repeats.repeated_by_node(since, ["s/a/a", "s/b/a"])
    assert {(cluster, names): count for cluster, names, count in counted} == nodes
    by_chain: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for group in groups:
        good = sum(run.status in (Status.PASS, Status.IMPROVEMENT) for run in group)
        by_chain[group[0].chain].append((good, len(group) - good))
    assert store.repeats.chains(since) == [
        Repeated(
            chain,
            groups=len(counts),
            mixed=sum(min(pair) > 0 for pair in counts),
            runs=sum(map(sum, counts)),
            disagreeing=sum(map(min, counts)),
        )
        for chain, counts in sorted(by_chain.items())
    ]
    assert sum(map(len, groups)) > 20


def _groups(store: Store, since: float) -> list[list[Run]]:
    """Return the groups of equal runs."""
    groups: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in store.runs.newest(limit=1000):
        is_counted = run.status in OUTCOMES and run.trigger != "bisect" and run.framework
        if is_counted and run.created_at >= since:
            groups[run.chain, run.mode, run.environment, run.framework].append(run)
    return list(groups.values())


@pytest.mark.parametrize("kind", ["sqlite"])
def test_equal_runs_are_searched_in_their_index(
    store: Store, plan_of: Callable[[Callable[[], object]], list[str]]
) -> None:
    """Without a sort of all runs: it takes three times as long as all else."""
    (scan,) = [line for line in plan_of(lambda: store.repeats.chains(T0)) if " runs " in line]
    assert scan == "SCAN runs USING INDEX ix_runs_subject"
    plan = plan_of(lambda: store.repeats.repeated_by_node(T0, ["s/alpha/a"]))
    assert "SEARCH runs USING INDEX ix_runs_subject (chain=?)" in plan
