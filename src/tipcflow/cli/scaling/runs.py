"""Speeds of runs, from the metrics database."""

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from tipcflow.domain import ConfigError, Measurement, Phase, Plan, Step, StepKind, Variant
from tipcflow.parse.scaling.scaling import Speed, Topology
from tipcflow.parse.scaling.speeds import PRINTED, SPEEDS, Counter, Window, covered
from tipcflow.parse.scaling.speeds import Step as Line

# The batch size per device in the name of a benchmark's variant.
_BATCH = re.compile(r"(?:^|_)bs(\d{1,9})_")


class OfRun(NamedTuple):
    """One speed per training step, and notes about assumptions."""

    speeds: list[Speed]
    notes: list[str]


class Asked(NamedTuple):
    """Parameters of the computation of a step's speed."""

    rule: str
    batch: int
    window: Window


def run_speeds(wanted: str, *, rule: str, batch: int, window: Window) -> OfRun:
    """The speeds of a run's training steps that have one.

    `printed` adds up the speeds of the ranks (each prints its own; ranks without one are assumed to
    be as fast); `time` uses the batch_cost of the slowest rank.

    Raises:
        ConfigError: no such run, or it has no speed.
    """
    from tipcflow.store import Store

    with Store.open() as store:
        try:
            run = store.find_run(wanted)
        except ConfigError as error:
            raise ConfigError(
                "is neither a file nor a run", found=wanted, expected="a log, a file of results, or a run id"
            ) from error
        plan = store.plan_or_none(run.id)
        metrics = SPEEDS if rule == PRINTED else ("batch_cost",)
        found = store.measurements(run.id, metric=metrics, phase=Phase.TRAIN.value)
    if plan is None:
        raise ConfigError(f"run {run.id} has no plan", found=wanted, expected="a run with a training step")
    asked, told = Asked(rule, batch, window), OfRun([], [])
    for step in plan.steps:
        if step.kind is StepKind.TRAIN:
            mine = [one for one in found if one.step == step.id]
            ranks = _ranks(mine, window)
            if ranks:
                _of_step(plan, step, ranks, asked, told, run.id)
            if any(one.stands_for > 1 for one in mine):
                told.notes.append(f"{run.id} {step.id}: samples are rolled up, so all iterations are used")
    if not told.speeds:
        raise ConfigError(
            f"run {run.id} has no {metrics[0]} after the first {window.skip} iterations",
            found=wanted,
            expected="a longer training, or a smaller --skip",
        )
    return told


def _ranks(found: Sequence[Measurement], window: Window) -> list[list[Line]]:
    """The finite values of each rank's last attempt in the evaluated iterations."""
    last = max((one.attempt for one in found), default=0)
    metric = next((name for name in SPEEDS if any(one.metric == name for one in found)), "batch_cost")
    of_rank: defaultdict[tuple[str, int], list[Measurement]] = defaultdict(list)
    for one in found:
        if one.attempt == last and one.metric == metric:
            of_rank[one.node, one.rank].append(one)
    # Values without a rank are the launcher's copy of a rank's values.
    told = any(rank >= 0 for _, rank in of_rank)
    counted = (_counted(said, window) for (_, rank), said in of_rank.items() if rank >= 0 or not told)
    return [lines for lines in counted if lines]


def _counted(said: Sequence[Measurement], window: Window) -> list[Line]:
    """The lines of the evaluated iterations; logs do not print every iteration."""
    counter = Counter()
    ordered = sorted(said, key=lambda one: one.ordinal)
    lines = [Line(counter.at(one.iteration), None, {"": one.value}) for one in ordered]
    first = lines[0].iteration
    return [
        Line(line.iteration - first, None, line.values)
        for line, one in zip(lines, ordered, strict=True)
        if math.isfinite(one.value)
        and (one.stands_for > 1 or window.skip <= line.iteration - first < window.skip + window.take)
    ]


def _of_step(plan: Plan, step: Step, ranks: list[list[Line]], asked: Asked, told: OfRun, run: str) -> None:
    """Add the step's speed."""
    means = [sum(line.values[""] for line in lines) / len(lines) for lines in ranks]
    devices = max(1, step.world_size)
    speed = asked.batch * devices / max(means) if max(means) > 0 else 0.0
    if asked.rule == PRINTED:
        speed = sum(means) * devices / len(means)
        if len(means) < devices:
            told.notes.append(f"{run} {step.id}: {len(means)} of {devices} ranks print a speed; assumed for all")
    variant = next((one for one in plan.variants if one.id == step.variant), None)
    batch = _BATCH.search(step.variant)
    told.speeds.append(
        Speed(
            model=_model(plan, variant),
            precision=variant.precision if variant else "",
            topology=Topology(nodes=len(step.nodes), gpus=max(1, devices // len(step.nodes))),
            repeat=step.repeat,
            speed=speed,
            batch=int(batch[1]) if batch else 0,
            source=f"{run} {step.id}",
            how="printed" if asked.rule == PRINTED else "batch_cost",
            iterations=max(covered(lines, asked.window.skip, asked.window.take) for lines in ranks),
        )
    )


def _model(plan: Plan, variant: Variant | None) -> str:
    """The model's name, with the trainer if a run has several and this is not the plain one."""
    trainers = list(dict.fromkeys(one.trainer for one in plan.variants))
    other = variant is not None and len(trainers) > 1 and variant.trainer != trainers[0]
    return f"{plan.model}_{variant.trainer}" if variant and other else plan.model
