"""Metrics of a chain over its runs, as the CLI, the page, JSON and CSV show them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tipcflow.check.baseline.detector_limits import MetricLimits
from tipcflow.domain import MetricKey, Run, Status
from tipcflow.domain.numbers.metric_groups import Group, group_of
from tipcflow.domain.numbers.metrics import Scope, metric, scope_of, training_speed
from tipcflow.report.comparison.metrics import BETTER, UNKNOWN, WITHIN, WORSE

ACCEPTED = frozenset({Status.PASS, Status.IMPROVEMENT})


@dataclass(frozen=True)
class Target:
    """An accuracy target, in the unit of the metric's values."""

    value: float
    tolerance: float


@dataclass(frozen=True)
class Decision:
    """A user's decision about a metric: `accepted`, `pinned` or `reset`, at a run."""

    kind: str
    run: str
    who: str
    why: str
    at: float


@dataclass(frozen=True)
class MetricHistory:
    """A metric in each run of the chain.

    Attributes:
        metric: name, as in `numbers_of`.
        is_main: whether it is shown without a request: the most direct metric of its group.
        values: of each run, in `unit`; None where a run has none.
        base: the baseline of the next run; None without an accepted run.
        smallest: the smallest relative change that is detected; None while the history is too short.
        limit: the relative change that a check allows; None while the history is too short.
        runs: number of accepted runs of the baseline's level.
        since: ID of the first run of that level.
        target: None without one.
        pinned: the pinned value; None without one.
        verdict: the last value against the limit: `worse`, `better`, `within limit`, or `limit unknown`.
    """

    step: str
    leg: str
    metric: str
    unit: str
    better: str
    group: Group
    is_main: bool
    values: tuple[float | None, ...]
    base: float | None
    smallest: float | None
    limit: float | None
    runs: int
    since: str
    target: Target | None = None
    pinned: float | None = None
    decisions: tuple[Decision, ...] = ()

    @property
    def last(self) -> float | None:
        """The last known value; None without one."""
        return next((value for value in reversed(self.values) if value is not None), None)

    @property
    def change(self) -> float | None:
        """The last value relative to the baseline; None without both."""
        if self.last is None or not self.base:
            return None
        return (self.last - self.base) / abs(self.base)

    @property
    def verdict(self) -> str:
        """The last value against the limit."""
        if self.change is None or self.limit is None:
            return UNKNOWN
        if abs(self.change) <= self.limit:
            return WITHIN
        return BETTER if (self.change > 0) == (self.better == "higher") else WORSE


@dataclass(frozen=True)
class ChainHistory:
    """A chain in one mode, semantics and environment class.

    Attributes:
        groups: (mode, environment class, semantics, number of runs) of the chain, the most recently used first.
        policy: name of the newest run's policy.
        needed: number of accepted runs from which on a change is detectable.
        runs: oldest first.
        coarse: IDs of runs whose values are medians of whole series.
    """

    chain: str
    mode: str
    environment: str
    compat: str
    groups: tuple[tuple[str, str, str, int], ...]
    policy: str
    needed: int
    runs: tuple[Run, ...]
    metrics: tuple[MetricHistory, ...]
    coarse: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The history in types of JSON."""
        names = ("id", "created_at", "status", "framework", "suite_commit", "seed", "trigger")
        derived = ("last", "change", "verdict")
        return {
            **{name: getattr(self, name) for name in ("chain", "mode", "environment", "policy", "needed")},
            "semantics": self.compat,
            "runs": [{name: getattr(run, name) for name in names} for run in self.runs],
            "metrics": [asdict(row) | {name: getattr(row, name) for name in derived} for row in self.metrics],
            "coarse": list(self.coarse),
        }


def metric_history(
    key: MetricKey,
    values: Sequence[float | None],
    known: MetricLimits,
    *,
    past: Sequence[str],
    main: bool,
    target: Target | None,
    pinned: float | None,
    decisions: Sequence[Decision],
) -> MetricHistory:
    """Return the history of one metric.

    Args:
        past: IDs of the runs of `known.level.past`.
    """
    definition = metric(key.plain_metric)
    return MetricHistory(
        step=key.step,
        leg=key.leg,
        metric=key.metric,
        unit=definition.unit,
        better=definition.better,
        group=group_of(key),
        is_main=main,
        values=tuple(values),
        base=known.base,
        smallest=known.detector.smallest,
        limit=known.limit,
        runs=len(known.level.runs),
        since=past[known.level.start] if past else "",
        target=target,
        pinned=pinned,
        decisions=tuple(decisions),
    )


def main_metrics(last: Mapping[MetricKey, float], trained: Sequence[str]) -> set[MetricKey]:
    """Return the metrics that show a chain best: the speed of each training, the latency of each leg, all
    accuracies, and the peak memory of each training, of the rank that uses most.

    Args:
        last: the last value of each metric.
        trained: IDs of the training steps, without repeats.
    """
    chosen = {
        key
        for key in last
        if scope_of(key.metric) is Scope.EVALUATION or (key.leg and key.metric == "inference_time")
    }
    for step in trained:
        own = [key for key in last if key.step == step and not key.leg]
        speed = training_speed(key.metric for key in own)
        memory = [key for key in own if group_of(key) is Group.MEMORY and key.plain_metric.startswith("peak")]
        chosen |= {key for key in own if speed and key.metric == speed}
        for name in {key.plain_metric for key in memory}:
            chosen.add(
                max(
                    (key for key in memory if key.plain_metric == name),
                    key=lambda key: (key.rank is not None, last[key]),
                )
            )
    return chosen


_VERDICTS = (WORSE, BETTER, UNKNOWN, WITHIN)


def order(row: MetricHistory) -> tuple[int, int, float, str, str, str]:
    """Return the key for sorting: by group, the worst first."""
    far = abs(row.change or 0.0) / row.limit if row.limit else 0.0
    return (list(Group).index(row.group), _VERDICTS.index(row.verdict), -far, row.step, row.leg, row.metric)
