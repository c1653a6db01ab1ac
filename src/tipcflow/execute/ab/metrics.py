"""The metrics that an A/B comparison compares, and their values in a run."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from tipcflow.domain import ConfigError, MetricKey, Run, StepKind
from tipcflow.domain.keys import ALL, plain_metric, without_repeat
from tipcflow.domain.numbers.metrics import Better, metric, training_speed
from tipcflow.domain.numbers.units import first_names
from tipcflow.execute.chain.measured import ChainMetrics

if TYPE_CHECKING:
    from tipcflow.store import Store

_LISTED = 12
# Metrics of a chain in an error.
_METRICS = 40
# Every step has one; it includes the start of the framework and the transfer of the logs.
_WALL_TIME = "wall_time"
_LATENCY = "inference_time"


def better_of(key: MetricKey) -> Better:
    """Return the direction in which a metric is better."""
    return metric(key.plain_metric).better


def check_names(names: Collection[str], stored: ChainMetrics) -> None:
    """Check the metrics that a user names, before anything runs.

    Args:
        stored: the metrics of the chain's stored runs.

    Raises:
        ConfigError: neither direction of a metric is better, or no stored run measured it.
    """
    known = sorted({_name(key) for key in stored.keys if key.rank is None})
    expected = (
        f"one of {first_names(known, _METRICS)}"
        if known
        else "a metric with a direction, for example batch_cost, inference_time or peak_rss"
    )
    for name in names:
        if metric(plain_metric(name)).better == "none":
            what = "neither a lower nor a higher value of this metric is better"
            raise ConfigError(what, key="--metric", found=name, expected=expected)
        if stored.runs and name not in map(_name, stored.keys):
            raise ConfigError(stored.sentence, key="--metric", found=name, expected=expected)


def values_of(store: "Store", run: Run, names: Collection[str]) -> dict[MetricKey, float]:
    """Return the values that are compared: the named metrics of all steps and legs, median over samples and ranks.

    Args:
        names: metrics; none for the speed of each training and the latency of each inference leg.

    Raises:
        ConfigError: the run has none of the metrics.
    """
    numbers = {key: value for key, value in store.history.past_run(run.id).medians.items() if value > 0}
    chosen = [key for key in numbers if _name(key) in names] if names else _speeds(numbers, _trainings(store, run))
    if names and not chosen:
        known = sorted({_name(key) for key in numbers if better_of(key) != "none" and key.rank is None})
        raise ConfigError(
            f"run {run.id} did not measure it, or measured 0",
            key="--metric",
            found=", ".join(names),
            expected=f"one of {first_names(known, _LISTED)}",
        )
    return {key: numbers[key] for key in chosen}


def _name(key: MetricKey) -> str:
    """Return the name by which a user selects a metric: memory is of all processes together."""
    return key.metric.removesuffix(ALL)


def _speeds(numbers: Mapping[MetricKey, float], trainings: Collection[str]) -> list[MetricKey]:
    """Return the most direct measure of each step's speed, and the latency of each leg.

    Args:
        trainings: steps whose wall time counts if they have no other measure.
    """
    steps: dict[str, set[str]] = {}
    for key in numbers:
        if not key.leg:
            steps.setdefault(key.step, set()).add(key.metric)
    speeds = [
        MetricKey(step, "", name)
        for step, names in steps.items()
        if (name := training_speed(names if step in trainings else names - {_WALL_TIME}))
    ]
    return speeds + [key for key in numbers if key.leg and key.metric == _LATENCY]


def _trainings(store: "Store", run: Run) -> set[str]:
    """Return the ids of the trainings of a run, without the repeat as in the keys of metrics."""
    plan = store.plans.get_or_none(run.id)
    return {without_repeat(step.id) for step in plan.steps if step.kind is StepKind.TRAIN} if plan else set()
