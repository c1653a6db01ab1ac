"""Speeds of runs, from the metrics database."""

from collections import defaultdict
from collections.abc import Sequence

from tipcflow.domain import ConfigError, Measurement, Phase, Plan, Step, StepKind
from tipcflow.parse.scaling import Speed, Topology
from tipcflow.parse.speeds import PRINTED, Window


def run_speeds(wanted: str, *, rule: str, batch: int, window: Window) -> list[Speed]:
    """One speed per training step of a run that has any.

    `printed` adds up what the ranks print (each prints its own speed); `time` takes the batch_cost of the rank
    that was slowest.

    Raises:
        ConfigError: there is no such run, or nothing of it tells a speed.
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
        metric = "ips" if rule == PRINTED else "batch_cost"
        found = store.measurements(run.id, metric=metric, phase=Phase.TRAIN.value)
    if plan is None:
        raise ConfigError(f"run {run.id} has no plan", found=wanted, expected="a run that trained")
    speeds = [
        speed
        for number, step in enumerate(one for one in plan.steps if one.kind is StepKind.TRAIN)
        if (speed := _of_step(plan, step, number, found, rule=rule, batch=batch, window=window))
    ]
    if not speeds:
        raise ConfigError(
            f"run {run.id} tells no {metric} after the first {window.skip} iterations",
            found=wanted,
            expected="a longer training, or a smaller --skip",
        )
    return speeds


def _of_step(
    plan: Plan, step: Step, number: int, found: Sequence[Measurement], *, rule: str, batch: int, window: Window
) -> Speed | None:
    mine = [one for one in found if one.step == step.id]
    last = max((one.attempt for one in mine), default=0)
    ranks: defaultdict[int, list[float]] = defaultdict(list)
    for one in mine:
        if one.attempt == last and window.skip <= one.ordinal < window.skip + window.take:
            ranks[one.rank].append(one.value)
    if not ranks:
        return None
    means = [sum(values) / len(values) for values in ranks.values()]
    devices = max(1, step.world_size)
    speed = sum(means) if rule == PRINTED else batch * devices / max(means) if max(means) > 0 else 0.0
    variant = next((one for one in plan.variants if one.id == step.variant), None)
    return Speed(
        model=plan.model,
        precision=variant.precision if variant else "",
        topology=Topology(nodes=len(step.nodes), gpus=max(1, devices // len(step.nodes))),
        repeat=number + 1,
        speed=speed,
        source=step.id,
        how="printed" if rule == PRINTED else "batch_cost",
        iterations=max(map(len, ranks.values())),
    )
