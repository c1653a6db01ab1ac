"""Loads the history of a chain. No query grows with the number of samples of a run."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.check.baseline.detector_limits import MetricLimits, metric_limits
from tipcflow.check.context import observed_values
from tipcflow.config.policy import Policy
from tipcflow.domain import ConfigError, MetricKey, Run, StepKind, without_repeat
from tipcflow.domain.keys import EVAL
from tipcflow.domain.numbers.metrics import metric
from tipcflow.domain.numbers.units import finite
from tipcflow.domain.triggers import SIDE_RUNS
from tipcflow.execute.comparison.load import accepted_history, unconfirmed_runs
from tipcflow.execute.verdict.check_context import ActiveDecisions, active_decisions
from tipcflow.execute.verdict.judge import policy_of
from tipcflow.execute.verdict.run_data import readable_plan
from tipcflow.report.chain.history import (
    ChainHistory,
    Decision,
    MetricHistory,
    Target,
    main_metrics,
    metric_history,
    order,
)

if TYPE_CHECKING:
    from tipcflow.store import Baseline, Store

LAST = 60
# Runs that are searched for a plan and for accuracy targets, the newest first.
_SEARCHED = 3
_TARGETS = "accuracy.final"


def chain_history(
    store: "Store",
    chain: str,
    *,
    config_dir: Path,
    mode: str = "",
    environment: str | None = None,
    compat: str = "",
    last: int = LAST,
) -> ChainHistory:
    """Return the history of a chain; by default in the most recently used mode, semantics and environment class.

    Args:
        environment: the environment class; None for any.
        last: number of newest runs.

    Raises:
        ConfigError: no run matches.
    """
    groups = store.numbers.groups(chain, side=SIDE_RUNS)
    group = _chosen(chain, groups, mode, environment, compat)
    known = {"mode": group[0], "environment": group[1], "compat": group[2]}
    runs = store.numbers.recent(chain, limit=last, side=SIDE_RUNS, **known)
    rules = policy_of(store, runs[-1], "", config_dir)
    numbers = store.numbers.of([run.id for run in runs])
    metrics = _metrics(store, runs, {run_id: own.values for run_id, own in numbers.items()}, rules)
    return ChainHistory(
        chain=chain,
        groups=tuple(groups),
        policy=rules.name,
        needed=rules.detect.min_history,
        runs=tuple(runs),
        metrics=tuple(sorted(metrics, key=order)),
        coarse=tuple(run_id for run_id, own in numbers.items() if not own.exact),
        **known,
    )


def _chosen(
    chain: str, groups: Sequence[tuple[str, str, str, int]], mode: str, environment: str | None, compat: str
) -> tuple[str, str, str, int]:
    for group in groups:
        if mode in ("", group[0]) and environment in (None, group[1]) and compat in ("", group[2]):
            return group
    if not groups:
        raise ConfigError("no run of a chain with this name", key="chain", found=chain)
    raise ConfigError(
        "no run of the chain in this mode and environment class",
        key="chain",
        found=", ".join(filter(None, (mode, environment, compat))),
        expected="; ".join(", ".join(filter(None, group[:3])) for group in groups[:5]),
    )


def _metrics(
    store: "Store", runs: Sequence[Run], numbers: Mapping[str, Mapping[MetricKey, float]], rules: Policy
) -> list[MetricHistory]:
    newest = runs[-1]
    made = store.baselines.decisions(newest.chain, newest.mode, newest.environment)
    history, in_force, decided = accepted_history(store, newest, rules), active_decisions(made), _decided(made)
    doubtful = unconfirmed_runs(store, newest, history, rules)
    last: dict[MetricKey, float] = {}
    for run in runs:
        last |= numbers[run.id]
    main = main_metrics(last, _trained(store, runs))
    evaluated = {key for key in last if metric(key.plain_metric).better != "none" and rules.rule_of(key.metric)}
    targets = _targets(store, runs, numbers)
    return [
        _history(
            key,
            runs,
            numbers,
            metric_limits(observed_values(history, key, doubtful), key.metric, rules),
            [past.run for past in history if math.isfinite(past.medians.get(key, math.nan))],
            in_force,
            decided,
            targets,
            main=key in main,
        )
        for key in sorted(evaluated | main)
    ]


def _history(
    key: MetricKey,
    runs: Sequence[Run],
    numbers: Mapping[str, Mapping[MetricKey, float]],
    known: MetricLimits,
    past: Sequence[str],
    in_force: ActiveDecisions,
    decided: Mapping[MetricKey, Sequence[Decision]],
    targets: Mapping[MetricKey, Target],
    *,
    main: bool,
) -> MetricHistory:
    values = [finite(numbers[run.id].get(key)) for run in runs]
    pin = in_force.pins.get(key)
    return metric_history(
        key,
        values,
        known,
        past=past[-len(known.level.past) :],
        main=main,
        target=targets.get(key),
        pinned=pin.value if pin else None,
        decisions=decided.get(key, ()),
    )


def _trained(store: "Store", runs: Sequence[Run]) -> list[str]:
    """Return the training steps of the newest plan, without repeats."""
    for run in reversed(runs[-_SEARCHED:]):
        plan, _ = readable_plan(store, run.id)
        if plan is not None:
            steps = (step.id for step in plan.steps if step.kind is StepKind.TRAIN)
            return list(dict.fromkeys(map(without_repeat, steps)))
    return []


def _decided(made: "Iterable[Baseline]") -> dict[MetricKey, list[Decision]]:
    decided: dict[MetricKey, list[Decision]] = {}
    for item in made:
        kind = "reset" if not math.isfinite(item.value) else "pinned" if item.pinned else "accepted"
        decision = Decision(kind, item.run, item.who, item.why, item.accepted_at)
        decided.setdefault(MetricKey(item.step, item.leg, item.metric), []).append(decision)
    return decided


def _targets(
    store: "Store", runs: Sequence[Run], numbers: Mapping[str, Mapping[MetricKey, float]]
) -> dict[MetricKey, Target]:
    """Return the targets that the newest evaluated run was compared with, in the unit that its log prints."""
    for run in reversed(runs[-_SEARCHED:]):
        results = [result for result in store.checks.results(run.id) if result.check == _TARGETS]
        targets = {}
        for result in results:
            key = MetricKey(without_repeat(result.step), "", f"{EVAL}{result.metric}")
            value, target = result.measured.value, result.measured.target
            printed = numbers[run.id].get(key)
            if value and target is not None and printed:
                scale = printed / value
                targets[key] = Target(target * scale, (result.measured.tolerance or 0.0) * scale)
        if results:
            return targets
    return {}
