"""Runs of a training on two nodes, an export and an inference on the first, whose numbers are as always or not."""

import random
from collections.abc import Callable
from typing import Any

from tests.support.stories import T0, a_plan, a_record, a_run, losses, record_run

from tipcflow.domain import CheckResult, Command, Leg, Measurement, Phase, Status, Step, StepKind
from tipcflow.domain.keys import LegKey
from tipcflow.domain.run_documents import PredictionsDocument
from tipcflow.store import Store

NODES = ("node-a", "node-b")
PREPARE, TRAIN, EXPORT, INFER, LEG = "prepare", "v/train", "v/export", "v/infer_cpu", "cpu"
# (step, leg, node, rank, metric, unit, phase, usual value)
Number = tuple[str, str, str, int, str, str, Phase, float]


def usual(nodes: tuple[str, ...]) -> list[Number]:
    found: list[Number] = []
    for rank, node in enumerate(nodes):
        found += [
            (PREPARE, "", node, -1, "wall_time", "s", Phase.RESOURCE, 3.0),
            (TRAIN, "", node, -1, "probe.cpu", "s", Phase.RESOURCE, 0.05),
            (TRAIN, "", node, -1, "probe.memory", "s", Phase.RESOURCE, 0.03),
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
        (INFER, "", first, -1, "probe.cpu", "s", Phase.RESOURCE, 0.05),
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


def stored(
    store: Store, week: int, slower: Callable[[Number], float], nodes: tuple[str, ...], **fields: Any
) -> str:
    """A run whose numbers are as always but for noise, times `slower`."""
    run = a_run(f"run-{week:02}", created_at=T0 + week * 100, environment="cpu", nodes=nodes, **fields)
    store.runs.create(run, plan(nodes))
    for step in (PREPARE, TRAIN, EXPORT, INFER):
        where = nodes if step in (PREPARE, TRAIN) else nodes[:1]
        number = store.attempts.open(run.id, step, where, run.created_at)
        if step == INFER:
            record = a_record(run.id, step=INFER, leg=LEG, ended_at=T0 + 5)
            store.steps.set_leg(run.id, INFER, LEG, number, Status.PASS, "", record)
        records = [a_record(run.id, step=step, node=node) for node in where]
        store.attempts.close(run.id, step, number, Status.PASS, "", records, run.created_at + 12)
        store.steps.set(run.id, step, Status.PASS)
    source = random.Random(week)
    for one in usual(nodes):
        step, leg, node, rank, metric, unit, phase, value = one
        factor = slower(one) * (1 + source.gauss(0, 0.01))
        value = value / factor if metric == "ips" else value * factor
        known = {"run": run.id, "step": step, "leg": leg, "node": node, "rank": rank, "metric": metric}
        store.measurements.add([Measurement(**known, unit=unit, phase=phase, value=value)])
    for rank, node in enumerate(nodes):
        falling = [2.0 - at / 5 for at in range(8)]
        store.measurements.add(losses(run.id, falling, node=node, step=TRAIN, rank=rank))
    predictions = {LegKey(INFER, LEG).part: {"a.png": (0.9, 0.1), "b.png": (0.2, 0.8)}}
    store.documents.put(run.id, PredictionsDocument(predictions))
    return run.id


def record_slow_node(store: Store) -> None:
    """Runs of 40 days on nodes `a` and `b`: `b` and the speeds on it are 40 % slower from its run 20 of 30 on."""
    now = store.now()
    for number in range(30):
        for node in ("a", "b"):
            value = (1.4 if node == "b" and number >= 20 else 1.0) * (1 + 0.01 * (number % 3))
            run = record_run(
                store, a_run(f"{node}-{number}", nodes=(node,), created_at=now - (40 - number) * 86_400)
            )
            timed: dict[str, Any] = {"node": node, "rank": -1, "phase": Phase.RESOURCE, "unit": "s"}
            store.measurements.add(losses(run.id, [0.1 * value], metric="probe.cpu", **timed))
            ratios = {"ips": 1 / value, "batch_cost": value, "peak_rss": 5.0}
            common: dict[str, Any] = {"check": "c", "status": Status.PASS, "reason": "", "step": "s"}
            store.checks.replace(
                run.id,
                [CheckResult(metric=name, values={"ratio": ratio}, **common) for name, ratio in ratios.items()],
            )
