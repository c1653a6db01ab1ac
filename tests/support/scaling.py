"""Runs of trainings on several topologies, as `tipcflow scaling` reads them."""

from collections.abc import Iterable
from typing import Any

from tests.support.stories import a_plan, a_run

from tipcflow.domain import Command, Measurement, Phase, Plan, Step, StepKind, Variant
from tipcflow.store import Store


def trained(nodes: int, gpus: int, repeats: int, **fields: Any) -> Plan:
    """A plan of trainings only, on `nodes` nodes with `gpus` GPUs each."""
    names = tuple(f"node-{number}" for number in range(nodes))
    steps = tuple(
        Step(
            id=f"norm_train_repeat_{repeat}/train", kind=StepKind.TRAIN, variant="norm_train", repeat=repeat,
            nodes=names, commands={name: Command(text="python train.py") for name in names},
            world_size=nodes * gpus,
        )
        for repeat in range(1, repeats + 1)
    )  # fmt: skip
    variant = Variant(id="norm_train", trainer="norm_train", node_count=nodes, world_size=nodes * gpus)
    return a_plan(model="r50", nodes=names, variants=(variant,), steps=steps, **fields)


def samples(
    run: str, step: Step, speed: float, *, every: int = 1, ranks: Iterable[int] | None = None, epoch: int = 100
) -> list[Measurement]:
    """The log of each rank: 150 iterations in epochs, of which the first 50 are ten times as slow."""
    found = []
    for rank in range(step.world_size) if ranks is None else ranks:
        node = step.nodes[rank * len(step.nodes) // step.world_size]
        for ordinal, at in enumerate(range(0, 150, every)):
            own = speed / step.world_size / (10 if at < 50 else 1)
            where = {"ordinal": ordinal, "epoch": at // epoch, "iteration": at % epoch, "phase": Phase.TRAIN}
            for metric, value in (("ips", own), ("batch_cost", 128 / own)):
                one = {"run": run, "step": step.id, "node": node, "rank": rank, "metric": metric, "value": value}
                found.append(Measurement.model_validate(one | where))
    return found


def kept(store: Store, run_id: str, plan: Plan, speeds: Iterable[float], **fields: Any) -> None:
    """Store a run whose training steps have these speeds."""
    store.runs.create(a_run(run_id, nodes=plan.nodes), plan)
    for step, speed in zip(plan.steps, speeds, strict=True):
        store.attempts.open(run_id, step.id, step.nodes, 1_795_000_000.0)
        store.measurements.add(samples(run_id, step, speed, **fields))
