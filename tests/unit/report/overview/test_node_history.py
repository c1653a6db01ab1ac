"""Lasting slowdowns of nodes: found, dated, distinguished from slow code, and over once the node has recovered."""

import random
from collections.abc import Sequence

import pytest

from tipcflow.report.overview import node_history
from tipcflow.report.overview.node_history import CHAINS, NodeTrend, Sample, advice, change_text, make_node_history

T0 = 1_795_000_000.0
HOUR = 3600.0


def level(*parts: tuple[int, float], seed: int = 1, noise: float = 0.01) -> list[Sample]:
    """Values of levels (number of runs, level), a run per hour."""
    chance = random.Random(seed)
    values = [value * (1 + chance.gauss(0, noise)) for count, value in parts for _ in range(count)]
    return [Sample(f"r{index}", T0 + index * HOUR, value) for index, value in enumerate(values)]


def trends(**nodes: dict[str, Sequence[Sample]]) -> dict[str, NodeTrend]:
    history = make_node_history({("lab", name): own for name, own in nodes.items()}, at=T0, days=90)
    return {trend.node: trend for trend in history.nodes}


def test_slower_node_is_dated_and_proposed_for_draining() -> None:
    slow = {"cpu": level((30, 0.1), (12, 0.13)), "memory": level((42, 0.2), seed=2)}
    found = trends(b=slow, a={"cpu": level((42, 0.1), seed=3)})
    assert list(found) == ["b", "a"]
    trend = found["b"]
    (change,) = trend.changes
    assert (change.source, change.since, change.runs) == ("cpu", "r30", 12)
    assert change.size == pytest.approx(0.3, abs=0.02)
    assert trend.doubtful == tuple(f"r{index}" for index in range(30, 42))
    assert change_text(change).endswith("slower since 2026-11-19 17:06 UTC (run r30)")
    assert advice(trend) == [
        "proposed: drain b until the cause is fixed: tipcflow nodes drain b --because '…'",
        "doubtful: 12 runs since then: r30, r31, r32, r33, r34 and 7 more",
    ]
    assert (found["a"].changes, found["a"].is_slow, advice(found["a"])) == ((), False, [])


def test_node_that_recovered_is_not_slow() -> None:
    assert trends(a={"cpu": level((30, 0.1), (12, 0.13), (14, 0.1))})["a"].changes == ()


def test_single_slow_run_is_not_a_trend() -> None:
    assert trends(a={"cpu": level((30, 0.1), (1, 0.2), (10, 0.1))})["a"].changes == ()


def test_skipped_series_have_no_slowdown(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the gate is not run for has no slowdown if it is run."""
    chance = random.Random(5)
    series = [
        level(
            (chance.randint(8, 40), 1.0),
            (chance.randint(1, 20), chance.choice((0.9, 1.0, 1.05, 1.1, 1.3))),
            seed=seed,
        )
        for seed in range(60)
    ]
    nodes = {f"n{index}": {"cpu": values} for index, values in enumerate(series)}
    found = trends(**nodes)
    gates: list[int] = []
    monkeypatch.setattr(
        node_history, "_may_be_slower", lambda values, newest: bool(gates.append(len(values))) or True
    )
    assert trends(**nodes) == found
    assert len(gates) == len(series)
    assert any(trend.is_slow for trend in found.values())


def test_small_change_is_not_reported() -> None:
    assert trends(a={"cpu": level((30, 0.1), (30, 0.103), noise=0.001)})["a"].changes == ()


def test_slow_chains_on_a_single_node_are_suspected() -> None:
    found = trends(a={CHAINS: level((30, 1.0), (12, 1.2))}, b={CHAINS: level((42, 1.0), seed=2)})
    (change,) = found["a"].changes
    assert change.elsewhere == pytest.approx(0, abs=0.02)
    assert ", on other nodes " in change_text(change)
    assert not found["a"].is_slow
    assert found["a"].doubtful == ()
    assert advice(found["a"]) == ["only chains are slower: suspected, because no probe of the node is"]


def test_code_that_slows_all_nodes_is_not_a_slow_node() -> None:
    everywhere = {CHAINS: level((30, 1.0), (12, 1.2))}
    found = trends(a=everywhere, b={CHAINS: level((30, 1.0), (12, 1.2), seed=2)})
    assert [trend.changes for trend in found.values()] == [(), ()]


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_constant_nodes_are_hardly_ever_reported(noise: float) -> None:
    reported = sum(
        bool(trends(a={"cpu": level((90, 0.1), seed=seed, noise=noise)})["a"].changes) for seed in range(100)
    )
    assert reported <= 2
