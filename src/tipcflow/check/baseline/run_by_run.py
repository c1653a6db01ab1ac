"""Retrospective evaluation: each run of a series evaluated with the data known at its time."""

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from tipcflow.check.baseline.comparison import BaselineComparison, Confirm
from tipcflow.check.baseline.level import level_of
from tipcflow.check.baseline.replayed import Replay
from tipcflow.check.detect import Alert, Observed, Point, Series
from tipcflow.config.policy import MetricRule, Policy
from tipcflow.domain import ConfigError, Status, plain_metric
from tipcflow.domain.numbers.measured import Measured
from tipcflow.domain.numbers.metrics import METRICS, Better, metric

# Runs that a later run is never compared with.
_NOT_ACCEPTED = frozenset({Status.REGRESSION, Status.FAILED, Status.UNCONFIRMED, Status.NOT_RUN})
_NO_SAMPLE = "the confirm run measured nothing"


@dataclass(frozen=True, slots=True)
class JudgedPoint:
    """Result of the checks for one run of a series.

    Attributes:
        index: of the point, from 0.
        ratio: value over baseline; None where there is none.
        change: of a regression, or of an improvement that lasted.
        confirm: the confirm sample that was used.
        asked: whether the checks requested a confirm run.
    """

    index: int
    status: Status
    ratio: float | None
    reason: str
    change: Alert | None = None
    confirm: float | None = None
    asked: bool = False


def number_name(name: str, policy: Policy) -> str:
    """The number (as `numbers_of` names it) that a policy evaluates under this metric's name.

    Raises:
        ConfigError: the policy does not judge the metric.
    """
    for candidate in (name, f"eval.{name}"):
        if policy.rule_of(candidate) is not None and metric(plain_metric(candidate)).better != "none":
            return candidate
    evaluated = {candidate for candidate in METRICS if policy.rule_of(f"eval.{candidate}") is not None}
    evaluable = sorted({*policy.metrics} | evaluated)
    raise ConfigError(
        f"policy {policy.name} does not evaluate this metric",
        key="--metric",
        found=name,
        expected=", ".join(evaluable),
    )


def judge_run_by_run(
    series: Series, name: str, policy: Policy, *, accept_changes: bool = False
) -> Iterator[JudgedPoint]:
    """The result for each point, in order, from the points before it that would have been accepted.

    A confirm sample is used only if the checks request a confirm run. Where it is missing then, the
    confirm run measured nothing. Used samples remain evidence for later points, as do unconfirmed points that have
    one.

    Args:
        name: of the metric value, as returned by `number_name`; the series defines which direction is better.
        accept_changes: a regression or an improvement starts a new history with the runs of the new level, as if a
            user accepted it. Otherwise a regression joins no history.
    """
    judge = _Judge(series, name, policy)
    for index, point in enumerate(series.points):
        if point.value is None:
            yield JudgedPoint(index, Status.NOT_RUN, None, "the run has no samples")
            continue
        judged = judge.point(index, point, point.value)
        if judged.change is not None and accept_changes:
            judge.restart(judged.change, judged.confirm)
        elif judged.status not in _NOT_ACCEPTED:
            judge.add(index, point.value, judged.confirm)
        elif judged.status is Status.UNCONFIRMED and judged.confirm is not None:
            judge.add(index, point.value, judged.confirm, accepted=False)
        yield judged


class _Judge:
    """Evaluates the points of a series."""

    def __init__(self, series: Series, name: str, policy: Policy) -> None:
        self._series, self._name, self._policy = series, name, policy
        self._rule = policy.rule_of(name) or MetricRule()
        self._past: list[Observed] = []
        self._indices: list[int] = []
        self._replay = Replay()

    def add(self, index: int, value: float, confirm: float | None, *, accepted: bool = True) -> None:
        """Add a point to the history."""
        self._past.append(Observed(value, confirm, accepted))
        self._indices.append(index)

    def restart(self, change: Alert, confirm: float | None) -> None:
        """Start a new history with the points of the new level and the point that shows it."""
        value = self._series.points[change.index].value
        assert value is not None
        first = bisect_left(self._indices, change.since)
        del self._past[:first], self._indices[:first]
        self._past = [entry._replace(accepted=True) for entry in self._past]
        self.add(change.index, value, confirm)

    def point(self, index: int, point: Point, value: float) -> JudgedPoint:
        """The result for a point, with its confirm sample if the checks request one."""
        higher = self._series.higher_is_better
        level = level_of(self._past, self._name, self._policy, higher_is_better=higher, replay=self._replay)
        values = list(level.past)
        accepted = [at for at, entry in zip(self._indices, self._past, strict=True) if entry.accepted]
        past = accepted[len(accepted) - len(values) :]
        better: Better = "higher" if higher else "lower"

        def compare(confirm: Confirm) -> BaselineComparison:
            about = self._name, value, values, self._rule, self._policy, confirm
            return BaselineComparison(*about, better=better, unit=self._series.unit, level=level)

        question = compare(Confirm())
        status, reason = question.judge()
        asked = Measured(question.values).needs_confirm
        confirm = point.confirm if asked else None
        if asked:
            question = compare(Confirm(confirm, "" if confirm is not None else _NO_SAMPLE))
            status, reason = question.judge()
        measured = Measured(question.values)
        ratio = math.nan if measured.ratio is None else measured.ratio
        change = None
        # One run that is better than the limit does not make a new level: the detector decides when it lasts.
        lasting = measured.since is not None or bool(values and level.exact)
        if status is Status.REGRESSION or (status is Status.IMPROVEMENT and lasting):
            since = len(past) if measured.since is None else measured.since
            change = Alert(
                index=index,
                since=past[since] if since < len(past) else index,
                direction="worse" if status is Status.REGRESSION else "better",
                size=_size(value, level.base) if measured.size is None else measured.size,
                confidence=measured.confidence,
                confirmed=confirm is not None,
            )
        return JudgedPoint(index, status, ratio if math.isfinite(ratio) else None, reason, change, confirm, asked)


def _size(value: float, base: float) -> float:
    """Return a relative change; 1 for a change from 0."""
    return (value - base) / abs(base) if base else 1.0
