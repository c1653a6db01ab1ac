"""Speeds of runs, from the metrics database."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tipcflow.domain import ConfigError, Launch, Measurement, Phase, Plan, Step, StepKind, Variant
from tipcflow.domain.run.scaling import ScalingDocument
from tipcflow.parse.scaling.idle import Load, idle_ranks
from tipcflow.parse.scaling.scaling import Speed, Topology
from tipcflow.parse.scaling.speeds import PRINTED, SPEEDS, Counter, Window, covered
from tipcflow.parse.scaling.speeds import Step as Line
from tipcflow.store import Store

# The batch size per device in the name of a benchmark's variant.
_BATCH = re.compile(r"(?:^|_)bs(\d{1,9})_")


class OfRun(NamedTuple):
    """One speed per training step, and notes about assumptions."""

    speeds: list[Speed]
    notes: list[str]


class RunChoice(NamedTuple):
    """Parameters of the computation of a step's speed."""

    rule: str
    batch: int
    window: Window


def runs_of(store: Store, wanted: str) -> tuple[str, ...]:
    """Return the runs of the scaling chain that ended with this run; otherwise only this run."""
    try:
        run = store.runs.find(wanted)
    except ConfigError:
        return (wanted,)
    series = store.documents.get(run.id, ScalingDocument)
    return tuple(entry.run for entry in series.topologies if entry.run) if series else (wanted,)


def run_speeds(store: Store, wanted: str, *, rule: str, batch: int, window: Window) -> OfRun:
    """The speeds of a run's training steps that have one.

    `printed` adds up the speeds of the ranks (each prints its own; ranks without one are assumed to
    be as fast); `time` uses the batch_cost of the slowest rank. The log of a training that a shell script starts
    (`launch: script`) has the printed speed of all ranks, unless the launcher wrote worker logs.

    Raises:
        ConfigError: no such run, or it has no speed.
    """
    try:
        run = store.runs.find(wanted)
    except ConfigError as error:
        raise ConfigError(
            "is neither a file nor a run", found=wanted, expected="a log, a file of results, or a run ID"
        ) from error
    plan = store.plans.get_or_none(run.id)
    metrics = SPEEDS if rule == PRINTED else ("batch_cost",)
    measurements = store.measurements.of(run.id, metric=metrics, phase=Phase.TRAIN.value)
    if plan is None:
        raise ConfigError(f"run {run.id} has no plan", found=wanted, expected="a run with a training step")
    choice, result = RunChoice(rule, batch, window), OfRun([], [])
    for step in plan.steps:
        if step.kind is StepKind.TRAIN:
            step_measurements = [measurement for measurement in measurements if measurement.step == step.id]
            if has_total := _has_total(plan, step_measurements):
                step_measurements = [sample for sample in step_measurements if sample.node == step.nodes[0]]
            if ranks := _ranks(step_measurements, window):
                _of_step(plan, step, ranks, choice, result, run.id, has_total=has_total)
            if any(measurement.stands_for > 1 for measurement in step_measurements):
                result.notes.append(f"{run.id} {step.id}: samples are rolled up, so all iterations are used")
    result.notes.extend(f"{run.id} {note}" for note in idle_ranks(_loads(store, plan, run.id)))
    if not result.speeds:
        raise ConfigError(
            f"run {run.id} has no {metrics[0]} after the first {window.skip} iterations",
            found=wanted,
            expected="a longer training, or a smaller --skip",
        )
    return result


def _loads(store: Store, plan: Plan, run: str) -> Iterator[Load]:
    """Yield what the node runner observed of each rank, in the last attempt of each training."""
    trainings = {step.id for step in plan.steps if step.kind is StepKind.TRAIN}
    last = {attempt.step: attempt for attempt in store.attempts.of(run) if attempt.step in trainings}
    for attempt in last.values():
        for record in attempt.records:
            for rank in record.observed.ranks if record.observed else ():
                yield Load(attempt.step, record.node, rank.rank, rank.seconds, rank.cpu_s)


def _has_total(plan: Plan, measurements: Sequence[Measurement]) -> bool:
    """Whether the first node's log has the speed of all ranks."""
    return any(
        change.used == Launch.SCRIPT.value for change in plan.substitutions if change.what == "launch"
    ) and (not any("workerlog" in measurement.source for measurement in measurements))


def _ranks(measurements: Sequence[Measurement], window: Window) -> list[list[Line]]:
    """The finite values of each rank's last attempt in the evaluated iterations."""
    last = max((measurement.attempt for measurement in measurements), default=0)
    metric = next(
        (name for name in SPEEDS if any(measurement.metric == name for measurement in measurements)), "batch_cost"
    )
    of_rank: defaultdict[tuple[str, int], list[Measurement]] = defaultdict(list)
    for measurement in measurements:
        if measurement.attempt == last and measurement.metric == metric:
            of_rank[measurement.node, measurement.rank].append(measurement)
    # Values without a rank are the launcher's copy of a rank's values.
    has_ranks = any(rank >= 0 for _, rank in of_rank)
    counted = (_counted(values, window) for (_, rank), values in of_rank.items() if rank >= 0 or not has_ranks)
    return [lines for lines in counted if lines]


def _counted(measurements: Sequence[Measurement], window: Window) -> list[Line]:
    """The lines of the evaluated iterations; logs do not print every iteration."""
    counter = Counter()
    ordered = sorted(measurements, key=lambda measurement: measurement.ordinal)
    lines = [Line(counter.at(measurement.iteration), None, {"": measurement.value}) for measurement in ordered]
    first = lines[0].iteration
    return [
        Line(line.iteration - first, None, line.values)
        for line, measurement in zip(lines, ordered, strict=True)
        if math.isfinite(measurement.value)
        and (measurement.stands_for > 1 or window.skip <= line.iteration - first < window.skip + window.take)
    ]


def _of_step(
    plan: Plan,
    step: Step,
    ranks: list[list[Line]],
    choice: RunChoice,
    result: OfRun,
    run: str,
    *,
    has_total: bool,
) -> None:
    """Add the step's speed.

    Args:
        has_total: the only log has the speed of all ranks.
    """
    means = [sum(line.values[""] for line in lines) / len(lines) for lines in ranks]
    devices = max(1, step.world_size)
    speed = choice.batch * devices / max(means) if max(means) > 0 else 0.0
    if choice.rule == PRINTED:
        speed = means[0] if has_total else sum(means) * devices / len(means)
        if len(means) < devices and not has_total:
            result.notes.append(f"{run} {step.id}: {len(means)} of {devices} ranks print a speed; assumed for all")
    variant = next((candidate for candidate in plan.variants if candidate.id == step.variant), None)
    batch = _BATCH.search(step.variant)
    result.speeds.append(
        Speed(
            model=_model(plan, variant),
            precision=variant.precision if variant else "",
            topology=Topology(nodes=len(step.nodes), gpus=max(1, devices // len(step.nodes))),
            repeat=step.repeat,
            speed=speed,
            batch=int(batch[1]) if batch else 0,
            source=f"{run} {step.id}",
            how="printed" if choice.rule == PRINTED else "batch_cost",
            iterations=max(covered(lines, choice.window.skip, choice.window.take) for lines in ranks),
        )
    )


def _model(plan: Plan, variant: Variant | None) -> str:
    """The model's name, with the trainer if a run has several and this is not the plain one."""
    trainers = list(dict.fromkeys(candidate.trainer for candidate in plan.variants))
    other = variant is not None and len(trainers) > 1 and variant.trainer != trainers[0]
    return f"{plan.model}_{variant.trainer}" if variant and other else plan.model
