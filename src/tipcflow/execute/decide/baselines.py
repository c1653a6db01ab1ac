"""Decisions about the baselines of a run's metrics: accept, pin, reset."""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from tipcflow.domain import ConfigError, MetricKey, Run
from tipcflow.domain.numbers.metrics import metric as known_metric
from tipcflow.store import Baseline

if TYPE_CHECKING:
    from tipcflow.store import Store


class BaselineKind(StrEnum):
    """What is decided about a run's metrics."""

    ACCEPT = "accept"
    PIN = "pin"
    RESET = "reset"


def comparable_values(store: "Store", run: Run, metrics: Sequence[str], step: str) -> dict[MetricKey, float]:
    """Return the run's value of each comparable metric that is selected.

    Args:
        metrics: names, with or without their aggregation; all if empty.
        step: '' for all steps.

    Raises:
        ConfigError: the run has no such metric.
    """
    values: dict[MetricKey, float] = {}
    for key, number in store.history.past_run(run.id).medians.items():
        plain = key.plain_metric
        if known_metric(plain).better == "none" or (metrics and not {key.metric, plain} & set(metrics)):
            continue
        if step in ("", key.step):
            values[key] = number
    if not values:
        wanted = f" of {', '.join(metrics)}" if metrics else ""
        raise ConfigError(f"run {run.id} has no comparable value{wanted}", hint="`tipcflow show RUN`")
    return values


def draft_baselines(
    store: "Store",
    run: Run,
    kind: BaselineKind,
    *,
    who: str,
    why: str,
    metrics: Sequence[str] = (),
    step: str = "",
) -> list[Baseline]:
    """Return the decisions about a run's metrics, without storing them.

    Raises:
        ConfigError: the run has not ended, or has no such metric.
    """
    numbers = comparable_values(store, run, metrics, step)
    if run.status is None:
        raise ConfigError(f"run {run.id} is running", expected="a finished run")
    at = store.now()
    return [
        Baseline(
            chain=run.chain,
            mode=run.mode,
            step=key.step,
            leg=key.leg,
            metric=key.metric,
            environment=run.environment,
            value=math.nan if kind is BaselineKind.RESET else number,
            unit=known_metric(key.plain_metric).unit,
            pinned=kind is BaselineKind.PIN,
            run=run.id,
            who=who,
            why=why,
            accepted_at=at,
        )
        for key, number in numbers.items()
    ]


def decision_word(decision: Baseline) -> str:
    """Return what was decided, in the past tense."""
    if not math.isfinite(decision.value):
        return "reset"
    return "pinned" if decision.pinned else "accepted"


def decision_line(made: Sequence[Baseline]) -> str:
    """Return a sentence about decisions that were made together."""
    first = made[0]
    return f"{decision_word(first)}: {len(made)} metric values of {first.chain} in {first.mode}, run {first.run}"
