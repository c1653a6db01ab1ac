import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.stories import T0, a_run

from tipcflow.domain import Status
from tipcflow.report.overview.flaky import examples_of, nodes_of, wilson
from tipcflow.report.overview.today import GREEN


@pytest.mark.parametrize(
    ("hits", "runs", "low", "high"),
    # Of the R function prop.test without continuity correction.
    [(0, 10, 0.0, 0.2775), (1, 10, 0.0179, 0.4042), (5, 10, 0.2366, 0.7634), (81, 263, 0.2553, 0.3662)],
)
def test_wilson_intervals_equal_known_values(hits: int, runs: int, low: float, high: float) -> None:
    rate = wilson(hits, runs)
    assert (rate.low, rate.high) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 100_000).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs))))
def test_an_interval_contains_the_rate(counts: tuple[int, int]) -> None:
    rate = wilson(*counts)
    assert 0 <= rate.low <= rate.rate <= rate.high <= 1


def runs(*words: Status) -> list:  # type: ignore[type-arg]
    return [
        a_run(
            f"r{number}",
            status=word,
            ended_at=T0 + 9,
            created_at=T0 + number,
            reason=f"why {number}",
            nodes=("n",),
        )
        for number, word in enumerate(words)
    ]


def test_examples_are_pairs_of_neighbours_the_newest_first() -> None:
    chain = a_run().chain
    found = examples_of(runs(Status.PASS, Status.FAILED, Status.REGRESSION, Status.PASS), GREEN, {})[chain]
    assert [(each.red, each.green, each.reason) for each in found] == [
        ("r2", "r3", "why 2"),
        ("r1", "r0", "why 1"),
    ]


def test_nodes_are_sorted_by_the_surest_problem() -> None:
    counts = [
        ("local", ("a",), Status.PASS, 1), ("local", ("a",), Status.INFRA_FAILURE, 1),
        ("local", ("b", "c"), Status.INFRA_FAILURE, 30), ("local", ("b",), Status.PASS, 70),
    ]  # fmt: skip
    nodes = nodes_of(counts, runs(Status.PASS, Status.FAILED), GREEN)
    assert [(node.node, node.infrastructure.hits, node.infrastructure.runs) for node in nodes] == [
        ("c", 30, 30), ("b", 30, 100), ("a", 1, 2),
    ]  # fmt: skip
    assert {node.red_elsewhere_green for node in nodes} == {None}, "no run on them has an equal run"


def test_red_runs_of_a_node_have_an_interval() -> None:
    mixed = runs(Status.PASS, Status.FAILED)
    counts = [("local", ("n",), Status.FAILED, 2), ("local", ("o",), Status.PASS, 4)]
    repeated = [("local", ("n",), 6), ("local", ("n", "o"), 4)]
    n, o = sorted(nodes_of(counts, mixed, GREEN, repeated), key=lambda node: node.node)
    assert n.red_elsewhere_green == wilson(1, 10)
    assert o.red_elsewhere_green == wilson(0, 4)
