"""What the steps of a simulated run store: as much as those of a lite run."""

from collections.abc import Iterator
from random import Random
from typing import Any

from tipcflow.domain import EndReason, ExitRecord, Measurement, Phase, Step, StepKind

LINES, MOST_RANKS = 30, 8
LOGGED = {"loss": 5.0, "top1": 0.5, "lr": 0.01, "reader_cost": 0.03, "batch_cost": 0.05, "ips": 1156.0}
UNITS = {"reader_cost": "s", "batch_cost": "s", "ips": "images/s"}
TIMES = ("preprocess_time", "inference_time", "postprocess_time")


def measurements_of(run: str, step: Step, attempt: int) -> Iterator[Measurement]:
    """Yield the numbers of a step: of each rank six per line, of an evaluation three, of a leg three."""
    rng = Random(f"{run} {step.id}")
    known: dict[str, Any] = {"run": run, "step": step.id, "attempt": attempt, "node": step.nodes[0]}
    if step.kind is StepKind.TRAIN:
        for rank in range(min(MOST_RANKS, max(1, step.world_size))):
            for line in range(LINES):
                at = {"ordinal": line, "epoch": line // 10, "iteration": line % 10, "offset": 180 * line}
                for metric, base in LOGGED.items():
                    yield Measurement(
                        **known, **at, rank=rank, metric=metric, phase=Phase.TRAIN, unit=UNITS.get(metric, ""),
                        value=round(base * rng.gauss(1, 0.01), 5), source=f"files/log/workerlog.{rank}",
                    )  # fmt: skip
    elif step.kind is StepKind.EVAL:
        for metric in ("loss", "top1", "top5"):
            yield Measurement(
                **known, rank=0, metric=metric, phase=Phase.EVAL, value=round(rng.random(), 5), source="main.log"
            )
    for leg in step.legs:
        for metric in TIMES if not leg.not_run else ():
            yield Measurement(
                **known, leg=leg.id, metric=metric, phase=Phase.INFER, unit="ms", source="leg.log",
                value=round(4 * rng.gauss(1, 0.01), 5),
            )  # fmt: skip


def records_of(run: str, step: Step, begun: float, ended: float) -> tuple[list[ExitRecord], dict[str, ExitRecord]]:
    """Return the exit records of a step's nodes and of its legs."""
    known: dict[str, Any] = {
        "run": run, "step": step.id, "reason": EndReason.EXITED, "exit_code": 0,
        "started_at": begun, "ended_at": ended,
    }  # fmt: skip
    records = [ExitRecord(node=node, **known) for node in step.nodes]
    legs = {leg.id: ExitRecord(node=step.nodes[0], leg=leg.id, **known) for leg in step.legs if not leg.not_run}
    return records, legs
