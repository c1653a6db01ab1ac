"""`/tipc ab`: comparisons of the base with the head, from the command to the edited comment."""

from typing import Any

import pytest
from tests.support.github.world import CHAIN, World, git
from tests.support.stories import a_run

from tipcflow.domain import Run, Status
from tipcflow.domain.run_documents import AbDocument
from tipcflow.github.flow import ComparisonBody, living_comparisons, work_waits

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def base_branch(world: World) -> None:
    """A base branch without the commits of the pull request."""
    git(world.suite, "branch", "release", world.base)
    world.github.pull["base"]["ref"] = "release"


def replies(world: World) -> list[str]:
    """The comments about comparisons."""
    return [each["body"] for each in world.github.comments if "A/B comparison" in each["body"]]


def comparison(world: World) -> ComparisonBody:
    (living,) = living_comparisons(world.store)
    return living[1]


def finish(world: World, status: Status = Status.REGRESSION, outcome: str = "worse") -> Run:
    """The DAG `ab` has stored its result with its first run."""
    first = comparison(world).runs[0].first
    run = a_run(first, chain=CHAIN, suite="toy", trigger="ab")
    world.store.runs.create(run)
    metric = {"step": "v/train", "leg": "", "metric": "batch_cost", "ratio": 1.1, "low": 1.05, "high": 1.15}
    body: dict[str, Any] = {"status": status.value, "verdict": f"{outcome}: 1 of 1 metrics"}
    world.store.documents.put(first, AbDocument({**body, "metrics": [{**metric, "outcome": outcome}]}))
    return run


def test_command_compares_the_selected_chains_and_shows_the_result(world: World) -> None:
    world.pull_request("opened")
    world.work()
    world.end()
    world.settle()
    world.comment("/tipc ab")
    world.settle()
    (key,) = [key for key in world.dag_runs.started if key[0] == "ab"]
    conf = world.dag_runs.started[key]
    assert (conf["a"], conf["b"], conf["params_file"]) == (world.base, world.sha, "toy/train_infer_python.txt")
    assert (conf["mode"], conf["cluster"], conf["budget_minutes"]) == ("lite_train_lite_infer", "local", 60.0)
    (text,) = replies(world)
    assert "A/B comparison running, 0 of 1 chain ended" in text
    assert not work_waits(world.store)
    finish(world)
    assert work_waits(world.store)
    world.settle()
    (text,) = replies(world)
    assert "A/B comparison worse" in text
    assert "| v/train | batch_cost | 1.1000 | 1.0500 to 1.1500 | worse |" in text
    assert living_comparisons(world.store) == []
    assert world.check()["conclusion"] == "success", "a comparison does not change the verdict of the commit"


def test_named_chain_needs_no_run_of_the_commit(world: World) -> None:
    world.comment("/tipc ab toy/toy/*", sender="author")
    world.settle()
    assert [key[0] for key in world.dag_runs.started] == ["ab"]
    assert world.github.reactions[-1][1] == "eyes"
    finish(world, Status.PASS, "same")
    world.settle()
    assert "A/B comparison better or the same" in replies(world)[0]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("/tipc ab", "No run of this commit has selected a chain: name a chain"),
        ("/tipc ab toy/none/*", "No chain matches"),
    ],
)
def test_comparison_without_a_chain_is_refused(world: World, command: str, words: str) -> None:
    world.comment(command)
    world.settle()
    assert world.dag_runs.started == {}
    (text,) = replies(world)
    assert "A/B comparison not done" in text
    assert words in text


def test_interrupted_comparison_starts_nothing_twice(world: World) -> None:
    world.dag_runs.away = True
    world.comment("/tipc ab toy/toy/*")
    world.settle()
    assert "Airflow does not respond" in replies(world)[0]
    world.dag_runs.away = False
    body = comparison(world)
    assert body.retry_at > world.store.now()
    from tipcflow_operators.pull_request.compare import advance_comparison

    places = {"config_dir": world.configs, "cache": world.folder / "cache"}
    for _ in range(2):
        advance_comparison(body, world.repository, world.store, world.dag_runs.runs(), **places)
    assert len(world.dag_runs.started) == 1


def test_code_of_a_fork_is_not_compared_without_approval(world: World) -> None:
    world.push(fork=True)
    world.comment("/tipc ab toy/toy/*")
    world.settle()
    assert (world.dag_runs.started, replies(world)) == ({}, [])


def test_cancelled_and_lost_comparisons_end(world: World) -> None:
    world.comment("/tipc ab toy/toy/*")
    world.settle()
    world.comment("/tipc cancel")
    world.settle()
    (stopped,) = world.dag_runs.stopped
    assert stopped[0] == "ab"
    assert "cancelled by maintainer" in replies(world)[0]
    world.comment("/tipc ab toy/toy/*")
    world.settle()
    world.dag_runs.stopped.append(("ab", comparison(world).runs[0].run_id))
    world.settle()
    assert "ended without a result" in replies(world)[1]
