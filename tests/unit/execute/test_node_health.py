"""node_health in the judge: runs in a database, judged by the shipped policies."""

import random
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import T0, a_plan, a_record, a_run, losses

from tipcflow.config.references import References
from tipcflow.domain import CheckResult, Command, Leg, Measurement, Phase, Status, Step, StepKind
from tipcflow.execute import judgement
from tipcflow.store import Store

CONFIGS = Path(__file__).parents[3] / "configs"
NODES = ("node-a", "node-b")
PREPARE, TRAIN, EXPORT, INFER, LEG = "prepare", "v/train", "v/export", "v/infer_cpu", "cpu"
# (step, leg, node, rank, metric, unit, phase, usual value)
Number = tuple[str, str, str, int, str, str, Phase, float]


def usual(nodes: tuple[str, ...]) -> list[Number]:
    found: list[Number] = []
    for rank, node in enumerate(nodes):
        found += [
            (PREPARE, "", node, -1, "wall_time", "s", Phase.RESOURCE, 3.0),
            (TRAIN, "", node, rank, "reader_cost", "s", Phase.TRAIN, 0.01),
            (TRAIN, "", node, rank, "batch_cost", "s", Phase.TRAIN, 0.05),
            (TRAIN, "", node, rank, "ips", "images/s", Phase.TRAIN, 80.0),
            (TRAIN, "", node, -1, "wall_time", "s", Phase.RESOURCE, 20.0),
            (TRAIN, "", node, rank, "peak_rss", "bytes", Phase.RESOURCE, 3.4e8),
        ]
    first = nodes[0]
    return [
        *found,
        (EXPORT, "", first, -1, "wall_time", "s", Phase.RESOURCE, 6.0),
        (INFER, LEG, first, -1, "preprocess_time", "ms", Phase.INFER, 1.2),
        (INFER, LEG, first, -1, "inference_time", "ms", Phase.INFER, 6.0),
    ]


def plan(nodes: tuple[str, ...]) -> Any:
    there = dict.fromkeys(nodes, Command(text="true"))
    first = {"nodes": nodes[:1], "variant": "v"}
    legs = (Leg(id=LEG, command=Command(text="true"), device="cpu"),)
    return a_plan(
        nodes=nodes,
        steps=(
            Step(id=PREPARE, kind=StepKind.PREPARE, nodes=nodes, commands=there),
            Step(id=TRAIN, kind=StepKind.TRAIN, variant="v", nodes=nodes, commands=there, world_size=len(nodes)),
            Step(id=EXPORT, kind=StepKind.EXPORT, after=(TRAIN,), **first),
            Step(id=INFER, kind=StepKind.INFER_CPU, after=(EXPORT,), legs=legs, **first),
        ),
    )


def stored(store: Store, week: int, slower: Callable[[Number], float], nodes: tuple[str, ...]) -> str:
    """A run whose numbers are as always but for noise, times `slower`."""
    run = a_run(f"run-{week:02}", created_at=T0 + week * 100, environment="cpu", nodes=nodes)
    store.create_run(run, plan(nodes))
    for step in (PREPARE, TRAIN, EXPORT, INFER):
        where = nodes if step in (PREPARE, TRAIN) else nodes[:1]
        number = store.open_attempt(run.id, step, where, run.created_at)
        if step == INFER:
            record = a_record(run.id, step=INFER, leg=LEG, ended_at=T0 + 5)
            store.set_leg(run.id, INFER, LEG, number, Status.PASS, "", record)
        records = [a_record(run.id, step=step, node=node) for node in where]
        store.close_attempt(run.id, step, number, Status.PASS, "", records, run.created_at + 12)
        store.set_step(run.id, step, Status.PASS)
    source = random.Random(week)
    for one in usual(nodes):
        step, leg, node, rank, metric, unit, phase, value = one
        factor = slower(one) * (1 + source.gauss(0, 0.01))
        value = value / factor if metric == "ips" else value * factor
        known = {"run": run.id, "step": step, "leg": leg, "node": node, "rank": rank, "metric": metric}
        store.add_measurements([Measurement(**known, unit=unit, phase=phase, value=value)])
    for rank, node in enumerate(nodes):
        falling = [2.0 - at / 5 for at in range(8)]
        store.add_measurements(losses(run.id, falling, node=node, step=TRAIN, rank=rank))
    predictions = {f"{INFER}/{LEG}": {"a.png": (0.9, 0.1), "b.png": (0.2, 0.8)}}
    store.put_document(run.id, "predictions", predictions)
    return run.id


@pytest.fixture(scope="module")
def usual_weeks(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, tuple[str, ...]], Path]:
    """Databases with so many usual runs on these nodes, each made once."""

    @cache
    def database(weeks: int, nodes: tuple[str, ...]) -> Path:
        path = tmp_path_factory.mktemp("weeks") / "tipcflow.db"
        with Store.open(f"sqlite:///{path}") as store:
            for week in range(weeks):
                run = stored(store, week, lambda _: 1.0, nodes)
                store.finish_run(run, Status.PASS, "", T0 + week * 100 + 50)
        return path

    return database


@pytest.fixture(params=["pr", "weekly"])
def judged(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usual_weeks: Any
) -> Any:
    """Judges the run after some usual ones: (status, reason, answers by check)."""
    monkeypatch.setattr(judgement, "GATE_S", 0.0)
    policy = judgement.load_policy(request.param, CONFIGS)

    def judge(
        slower: Callable[[Number], float], *, weeks: int = 9, nodes: tuple[str, ...] = NODES
    ) -> tuple[Status, str, dict[str, list[CheckResult]]]:
        path = shutil.copy(usual_weeks(weeks, nodes), tmp_path)
        with Store.open(f"sqlite:///{path}") as store:
            run = stored(store, weeks, slower, nodes)
            said = judgement.judge_run(store, run, rules=policy, references=References(suite="sample"))
            answers: dict[str, list[CheckResult]] = {}
            for one in store.check_results(run):
                answers.setdefault(one.check, []).append(one)
        return said.status, said.reason, answers

    return judge


def statuses(answers: dict[str, list[CheckResult]], *checks: str) -> set[Status]:
    return {one.status for check in checks for one in answers[check]}


SPEEDS = ("speed.batch_cost", "speed.ips", "speed.inference_time")


def test_usual_runs_are_healthy(judged: Any) -> None:
    status, reason, answers = judged(lambda _: 1.0)
    assert status is Status.PASS, reason
    (health,) = answers["node_health"]
    assert health.status is Status.PASS
    assert health.reason.endswith("on 2 nodes: no node was slow at everything")


def test_one_of_two_nodes_is_slow(judged: Any) -> None:
    """Its ranks hold up the training of both."""

    def slow(one: Number) -> float:
        step, _, node, *_, metric, _, _, _ = one
        return (
            3.0
            if metric != "peak_rss" and (node == "node-b" or (step == TRAIN and metric != "reader_cost"))
            else 1.0
        )

    status, reason, answers = judged(slow)
    assert (status, "node node-b was " in reason) == (Status.INFRA_FAILURE, True), reason
    (health,) = answers["node_health"]
    assert (health.status, health.values["sick"]) == (Status.INFRA_FAILURE, ["node-b"])
    explained = [one for check in SPEEDS[:2] for one in answers[check]]
    assert {one.status for one in explained} == {Status.INSUFFICIENT_DATA}
    assert all("node_health" in one.reason and "confirm" not in one.values for one in explained)
    assert statuses(answers, "speed.inference_time", "memory.peak_rss") == {Status.PASS}, "nothing is wrong there"


def test_the_node_that_infers_is_slow(judged: Any) -> None:
    status, reason, answers = judged(lambda one: 3.0 if one[2] == "node-a" and one[4] != "peak_rss" else 1.0)
    assert (status, "node node-a was " in reason) == (Status.INFRA_FAILURE, True), reason
    assert statuses(answers, "speed.batch_cost", "speed.inference_time") == {Status.INSUFFICIENT_DATA}


def test_the_only_node_is_slow(judged: Any) -> None:
    status, reason, answers = judged(lambda one: 3.0 if one[4] != "peak_rss" else 1.0, nodes=("node-a",))
    assert (status, "node node-a was " in reason) == (Status.INFRA_FAILURE, True), reason
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


def test_what_is_slow_on_all_nodes_is_no_node(judged: Any) -> None:
    _, _, answers = judged(lambda one: 3.0 if one[4] != "peak_rss" else 1.0)
    (health,) = answers["node_health"]
    assert health.status is Status.PASS
    assert health.reason.endswith("all nodes were slower, none in particular")


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


def test_memory_of_the_sick_node_is_explained_and_that_of_others_is_not(judged: Any) -> None:
    def slow(more: tuple[str, ...]) -> Callable[[Number], float]:
        return lambda one: 3.0 if one[2] in (more if one[4] == "peak_rss" else ("node-b",)) else 1.0

    _, _, answers = judged(slow(("node-b",)))
    (memory,) = answers["memory.peak_rss"]
    assert (memory.status, "node_health" in memory.reason) == (Status.INSUFFICIENT_DATA, True)


def test_memory_of_all_nodes_is_not_explained_by_one(judged: Any) -> None:
    _, _, answers = judged(lambda one: 3.0 if one[2] == "node-b" or one[4] == "peak_rss" else 1.0)
    (memory,) = answers["memory.peak_rss"]
    assert memory.values["confirm"] is True
    assert "node_health" not in memory.reason


def test_a_young_history_says_nothing_of_nodes(judged: Any) -> None:
    _, _, answers = judged(lambda one: 3.0 if one[2] == "node-a" else 1.0, weeks=3)
    (health,) = answers["node_health"]
    assert (health.status, health.reason) == (Status.INSUFFICIENT_DATA, "3 of 5 earlier runs")
