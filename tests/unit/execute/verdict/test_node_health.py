"""node_health in the judge: runs in a database, judged by the shipped policies."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import T0, open_store
from tests.support.two_nodes import NODES, TRAIN, Number, stored

from tipcflow.config.references import References
from tipcflow.domain import CheckResult, Status
from tipcflow.execute.verdict import judge as judgement

pytestmark = pytest.mark.slow

CONFIGS = Path(__file__).parents[4] / "configs"


@pytest.fixture(scope="module")
def usual_weeks(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, tuple[str, ...]], Path]:
    """Databases with a number of usual runs on these nodes, each created once."""

    @cache
    def database(weeks: int, nodes: tuple[str, ...]) -> Path:
        path = tmp_path_factory.mktemp("weeks") / "tipcflow.db"
        with open_store(path) as store:
            for week in range(weeks):
                run = stored(store, week, lambda _: 1.0, nodes)
                store.runs.finish(run, Status.PASS, "", T0 + week * 100 + 50)
        return path

    return database


@pytest.fixture(params=["pr", "weekly"])
def judged(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usual_weeks: Any
) -> Any:
    """Judges the run after some usual ones: (status, reason, results by check)."""
    monkeypatch.setattr(judgement, "GATE_S", 0.0)
    policy = judgement.load_policy(request.param, CONFIGS)

    def judge(
        slower: Callable[[Number], float], *, weeks: int = 9, nodes: tuple[str, ...] = NODES
    ) -> tuple[Status, str, dict[str, list[CheckResult]]]:
        path = Path(shutil.copy(usual_weeks(weeks, nodes), tmp_path))
        with open_store(path) as store:
            run = stored(store, weeks, slower, nodes)
            result = judgement.judge_run(store, run, rules=policy, references=References(suite="sample"))
            answers: dict[str, list[CheckResult]] = {}
            for one in store.checks.results(run):
                answers.setdefault(one.check, []).append(one)
        return result.status, result.reason, answers

    return judge


def statuses(answers: dict[str, list[CheckResult]], *checks: str) -> set[Status]:
    return {one.status for check in checks for one in answers[check]}


SPEEDS = ("speed.batch_cost", "speed.ips", "speed.inference_time")


def test_usual_runs_are_healthy(judged: Any) -> None:
    status, reason, answers = judged(lambda _: 1.0)
    assert status is Status.PASS, reason
    (health,) = answers["node_health"]
    assert health.status is Status.PASS
    assert health.reason == "probes of 2 nodes: none was slower than usual"


def test_slow_node_of_two_is_named(judged: Any) -> None:
    """Its ranks hold up the training of both."""

    def slow(one: Number) -> float:
        step, _, node, *_, metric, _, _, _ = one
        return (
            3.0
            if metric != "peak_rss" and (node == "node-b" or (step == TRAIN and metric in ("batch_cost", "ips")))
            else 1.0
        )

    status, reason, answers = judged(slow)
    assert (status, "node node-b degraded: " in reason) == (Status.INFRA_FAILURE, True), reason
    (health,) = answers["node_health"]
    assert (health.status, health.values["sick"]) == (Status.INFRA_FAILURE, ["node-b"])
    explained = [one for check in SPEEDS[:2] for one in answers[check]]
    assert {one.status for one in explained} == {Status.INSUFFICIENT_DATA}
    assert all("node_health" in one.reason and "confirm" not in one.values for one in explained)
    assert statuses(answers, "speed.inference_time", "memory.peak_rss") == {Status.PASS}, "nothing is wrong there"


def test_the_node_that_infers_is_slow(judged: Any) -> None:
    status, reason, answers = judged(lambda one: 3.0 if one[2] == "node-a" and one[4] != "peak_rss" else 1.0)
    assert (status, "node node-a degraded: " in reason) == (Status.INFRA_FAILURE, True), reason
    assert statuses(answers, "speed.batch_cost", "speed.inference_time") == {Status.INSUFFICIENT_DATA}


def test_the_only_node_is_slow(judged: Any) -> None:
    status, reason, answers = judged(lambda one: 3.0 if one[4] != "peak_rss" else 1.0, nodes=("node-a",))
    assert (status, "node node-a degraded: " in reason) == (Status.INFRA_FAILURE, True), reason
    assert statuses(answers, *SPEEDS) == {Status.INSUFFICIENT_DATA}


@pytest.mark.parametrize("nodes", [NODES, ("node-a",)])
def test_a_slower_model_is_not_explained_away(judged: Any, nodes: tuple[str, ...]) -> None:
    """All that the model does is slower on all nodes; reading data and starting processes is as always."""

    def slow(one: Number) -> float:
        work = one[4] in ("batch_cost", "ips", "inference_time") or (one[0], one[4]) == (TRAIN, "wall_time")
        return 3.0 if work else 1.0

    _, _, answers = judged(slow, nodes=nodes)
    assert statuses(answers, "node_health") == {Status.PASS}
    for check in SPEEDS:
        assert all(one.values.get("confirm") for one in answers[check]), check


def test_all_nodes_may_be_slow(judged: Any) -> None:
    """Two nodes of one busy host: the probes of both say so, and the code is not the cause."""
    status, _, answers = judged(lambda one: 3.0 if one[4] != "peak_rss" else 1.0)
    (health,) = answers["node_health"]
    assert (status, health.values["sick"]) == (Status.INFRA_FAILURE, ["node-a", "node-b"])


@pytest.mark.parametrize("nodes", [NODES, ("node-a",)])
def test_a_slower_input_pipeline_is_not_a_slow_node(judged: Any, nodes: tuple[str, ...]) -> None:
    """Reading and preprocessing take 3 x as long, a batch 1.6 x, and processes start slowly: all suite code."""
    times = {"reader_cost": 3.0, "preprocess_time": 3.0, "batch_cost": 1.6, "ips": 1.6, "wall_time": 3.0}
    status, _, answers = judged(lambda one: times.get(one[4], 1.0), nodes=nodes)
    assert statuses(answers, "node_health") == {Status.PASS}
    assert statuses(answers, "speed.reader_cost", "speed.preprocess_time") <= {
        Status.REGRESSION,
        Status.UNCONFIRMED,
    }
    assert status in (Status.REGRESSION, Status.UNCONFIRMED)


def test_a_node_with_slow_probes_and_usual_numbers_is_shown(judged: Any) -> None:
    status, reason, answers = judged(lambda one: 1.4 if one[4].startswith("probe.") else 1.0)
    assert status is Status.PASS, reason
    assert answers["node_health"][0].reason.startswith("probes on node-a, node-b were slow; the metrics")


@pytest.mark.parametrize("metric", ["batch_cost", "reader_cost", "wall_time", "inference_time"])
def test_a_single_metric_is_not_a_node(judged: Any, metric: str) -> None:
    _, _, answers = judged(lambda one: 3.0 if one[2] == "node-a" and one[4] == metric else 1.0)
    assert statuses(answers, "node_health") == {Status.PASS}


def test_far_more_than_the_node_explains_stays_a_question(judged: Any) -> None:
    def slow(one: Number) -> float:
        return 20.0 if one[4] == "inference_time" else 3.0 if one[2] == "node-a" and one[4] != "peak_rss" else 1.0

    _, _, answers = judged(slow)
    assert statuses(answers, "node_health") == {Status.INFRA_FAILURE}
    assert all(one.values.get("confirm") for one in answers["speed.inference_time"])
    assert not any(one.values.get("confirm") for one in answers["speed.batch_cost"])


def test_a_slow_node_explains_no_memory(judged: Any) -> None:
    _, _, answers = judged(lambda one: 3.0 if one[2] == "node-b" or one[4] == "peak_rss" else 1.0)
    (memory,) = answers["memory.peak_rss"]
    assert memory.status in (Status.REGRESSION, Status.UNCONFIRMED)
    assert "node_health" not in memory.reason


def test_a_short_history_has_no_result_for_nodes(judged: Any) -> None:
    _, _, answers = judged(lambda one: 3.0 if one[2] == "node-a" else 1.0, weeks=3)
    (health,) = answers["node_health"]
    assert (health.status, health.reason) == (
        Status.INSUFFICIENT_DATA,
        "3 of 5 earlier runs for a comparison",
    )
