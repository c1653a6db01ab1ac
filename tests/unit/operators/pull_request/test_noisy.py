"""Comparisons that the planner chooses: by noise and budget, once per commit, with the reason in the report."""

from importlib import import_module

import pytest
from tests.support.github.world import CHAIN, World, git
from tests.support.stories import copy_example

from tipcflow.execute.changes import NoisyChain
from tipcflow.github.flow import living_comparisons

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def noisy_history(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The history of the only chain is too noisy."""
    copy_example(world.configs / "clusters" / "local.yaml")
    git(world.suite, "branch", "release", world.base)
    world.github.pull["base"]["ref"] = "release"
    found = [NoisyChain(CHAIN, "batch_cost", 0.243, 0.2)]
    module = import_module("tipcflow_operators.pull_request.noisy")
    monkeypatch.setattr(module, "noisy_chains", lambda store, chains, **_: found if CHAIN in chains else [])


def budget(world: World, **fields: float) -> None:
    own = world.repository.budget.model_copy(update=fields)
    world.repository = world.repository.model_copy(update={"budget": own})


def opened(world: World) -> str:
    """Open the pull request; return the summary of its check run."""
    world.pull_request("opened", base_ref="release")
    world.settle()
    return str(world.check()["output"]["summary"])


def test_noisy_chain_is_compared_within_the_budget(world: World) -> None:
    budget(world, minutes=600)
    summary = opened(world)
    assert f"{CHAIN} is compared with the base: the gate finds changes of batch_cost from 24 % only" in summary
    assert sorted(key[0] for key in world.dag_runs.started) == ["ab", "toy.toy.train_infer_python"]
    ((name, body),) = living_comparisons(world.store)
    assert (name, body.comment, body.by, body.globs) == ("o/r", 0, "the policy", (CHAIN,))
    conf = next(conf for key, conf in world.dag_runs.started.items() if key[0] == "ab")
    assert conf["a"] == world.base
    assert 0 < conf["budget_minutes"] == body.budget_minutes < 600
    (text,) = [each["body"] for each in world.github.comments if "A/B comparison" in each["body"]]
    assert "only, not from 20 %" in text


def test_comparison_beyond_the_budget_is_named(world: World) -> None:
    budget(world, minutes=30)
    summary = opened(world)
    assert f"{CHAIN} is not compared with the base: " in summary
    assert "minutes do not fit the budget, although the gate finds changes of batch_cost" in summary
    assert living_comparisons(world.store) == []


def test_runs_of_commands_are_not_compared(world: World) -> None:
    budget(world, minutes=600)
    world.comment("/tipc run toy/toy/*")
    world.settle()
    assert living_comparisons(world.store) == []
