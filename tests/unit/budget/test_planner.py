"""Predictions with spread, and what is dropped in which order."""

import random
from typing import Any

import pytest

from tipcflow.budget import Estimate, Fit, Limits, PlannedChain, PlannedLeg, PlannedStep, estimate, fit, values

MINUTE = 60.0


def est(minutes: float, runs: int = 5) -> Estimate:
    return Estimate(minutes * MINUTE, minutes * MINUTE, runs)


def a_chain(
    name: str, legs: dict[str, float], *, train: float = 5, nodes: int = 1, value: int = 0
) -> PlannedChain:
    infer = tuple(PlannedLeg("infer", leg, est(minutes)) for leg, minutes in legs.items())
    steps = (
        PlannedStep("train", nodes, est(train)),
        PlannedStep("infer", 1, est(1), infer, ("train",)),
        PlannedStep("export", 1, est(0.5), after=("train",)),
    )
    return PlannedChain(name, steps, value)


def limits(chain: float = 15, total: float = 60, **more: Any) -> Limits:
    return Limits(chain_s=chain * MINUTE, total_s=total * MINUTE, **more)


def names(found: Fit) -> tuple[list[str], list[str], list[str]]:
    return (
        [one.chain for one in found.chains],
        [f"{one.chain}/{one.leg}" for one in found.legs],
        [one.chain for one in found.dropped],
    )


@pytest.mark.parametrize(
    ("seconds", "middle", "planned", "runs"),
    [
        ([], 180, 180, 0),
        ([10], 10, 10, 1),
        ([10, 30], 20, 20 + 2 * 1.4826 * 10, 2),
        ([10, 10, 100], 10, 100, 3),
        ([10, 10, 10, 10, 100], 10, 10, 5),
        ([10, 12, 14, 16, 18], 14, 14 + 2 * 1.4826 * 2, 5),
    ],
)
def test_estimates_use_the_middle_of_past_durations(
    seconds: list[float], middle: float, planned: float, runs: int
) -> None:
    found = estimate(seconds, 180)
    assert (found.seconds, found.runs) == (middle, runs)
    assert found.planned == pytest.approx(planned)


def test_the_time_of_a_chain_is_its_longest_path() -> None:
    assert a_chain("a", {"x": 2, "y": 3}).planned_s == (5 + 1 + 2 + 3) * MINUTE
    assert a_chain("a", {"x": 2}, nodes=3).node_s == (15 + 1 + 2 + 0.5) * MINUTE


def test_everything_that_fits_runs() -> None:
    found = fit([a_chain("a", {"x": 2, "y": 3})], limits())
    assert names(found) == (["a"], [], [])
    assert (found.unproven, found.total_s) == ((), 11 * MINUTE)


def test_legs_are_dropped_in_the_declared_order_then_the_longest() -> None:
    chain = a_chain("a", {"fp32": 4, "int8": 1, "trt": 2, "fp16": 3})
    assert names(fit([chain], limits(15, drop=("*/int8",))))[1] == ["a/int8"]
    assert names(fit([chain], limits(13, drop=("*/int8", "*/trt"))))[1] == ["a/int8", "a/trt"]
    assert names(fit([chain], limits(12)))[1] == ["a/fp32"]


def test_every_inference_step_keeps_one_leg() -> None:
    found = fit([a_chain("a", {"x": 5, "y": 5})], limits(11, drop=("*",)))
    assert names(found) == (["a"], ["a/x"], [])
    found = fit([a_chain("a", {"x": 5, "y": 5})], limits(10))
    assert names(found) == ([], [], ["a"])
    assert found.dropped[0].because == "it takes 11.0 min at least, the limit is 10.0 min"


def test_a_reserve_is_kept() -> None:
    chain = a_chain("a", {"x": 5, "y": 2})
    assert names(fit([chain], limits(15, 15)))[1] == []
    assert names(fit([chain], limits(15, 15, reserve_s=3 * MINUTE)))[1] == ["a/x"]


def test_the_least_valuable_chain_loses_its_legs_first_and_is_dropped_first() -> None:
    chains = [a_chain(name, {"x": 2, "y": 2}, value=value) for name, value in (("low", 2), ("top", 0), ("mid", 1))]
    assert names(fit(chains, limits(15, 30))) == (["top", "mid", "low"], [], [])
    assert names(fit(chains, limits(15, 28))) == (["top", "mid", "low"], ["low/x"], [])
    found = fit(chains, limits(15, 20))
    assert names(found) == (["top", "mid"], [], ["low"]), "the time of the dropped chain is used for their legs"
    found = fit(chains, limits(15, 19))
    assert names(found) == (["top", "mid"], ["mid/x"], ["low"])
    assert found.total_s == 18 * MINUTE


def test_nodes_run_chains_at_the_same_time() -> None:
    chains = [a_chain(str(number), {"x": 4}, value=number) for number in range(4)]
    assert fit(chains, limits(nodes=2)).total_s == 20 * MINUTE
    assert [one.start_s / MINUTE for one in fit(chains, limits(nodes=2)).chains] == [0, 0, 10, 10]
    wide = [a_chain("wide", {"x": 4}, nodes=2), *chains]
    assert fit(wide, limits(nodes=2)).total_s == 30 * MINUTE
    found = fit(wide, limits(nodes=1))
    assert (names(found)[2], found.dropped[0].because) == (["wide"], "it needs 2 nodes, the budget has 1")


def test_value_of_chains_follows_the_first_match() -> None:
    assert values(["s/a", "s/b", "s/c"], ["*/c", "*/b"]) == {"s/c": 0, "s/b": 1, "s/a": 2}
    assert values(["s/b", "s/a"], []) == {"s/b": 0, "s/a": 1}


def test_unknown_steps_are_listed() -> None:
    chain = PlannedChain("a", (PlannedStep("train", 1, est(3, 0)),))
    assert fit([chain], limits()).chains[0].unknown == ("train",)


def _random_chain(chance: random.Random, number: int) -> PlannedChain:
    legs = {f"l{leg}": chance.uniform(0.1, 6) for leg in range(chance.randint(1, 5))}
    return a_chain(f"c{number}", legs, train=chance.uniform(0.5, 12), nodes=chance.randint(1, 3), value=number)


def test_no_chain_is_lost_and_every_limit_holds() -> None:
    chance = random.Random(11)
    for _ in range(200):
        chains = [_random_chain(chance, number) for number in range(chance.randint(0, 6))]
        reserve, nodes = chance.uniform(0, 300), chance.randint(1, 4)
        rules = limits(chance.uniform(5, 20), chance.uniform(20, 60), reserve_s=reserve, nodes=nodes)
        found = fit(chains, rules)
        runs, _, dropped = names(found)
        assert sorted([*runs, *dropped]) == sorted(one.chain for one in chains)
        assert found.total_s <= rules.total_s - rules.reserve_s + 1e-6
        assert all(one.seconds <= rules.chain_s + 1e-6 for one in found.chains)
        assert len(found.unproven) == len(found.legs) + len(found.dropped)
        assert {one.chain for one in found.legs} <= set(runs), "legs of a dropped chain are not listed again"
