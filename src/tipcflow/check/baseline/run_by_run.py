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
_NO_MORE = "the series has no further one"


@dataclass(frozen=True, slots=True)
class JudgedPoint:
    """Result of the checks for one run of a series.

    Attributes:
        index: of the point, from 0.
        ratio: value over baseline; None where there is none.
        change: of a regression, or of an improvement that lasted.
        confirm: the confirm sample that was used.
        more: further confirm samples that were used.
        asked: how many confirm runs the checks requested.
    """

    index: int
    status: Status
    ratio: float | None
    reason: str
    change: Alert | None = None
    confirm: float | None = None
    more: tuple[float, ...] = ()
    asked: int = 0

    def observed(self, value: float, *, accepted: bool = True) -> Observed:
        """The point as evidence of later points."""
        return Observed(value, self.confirm, accepted, self.more)


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
            judge.restart(judged.change, judged.observed(point.value))
        elif judged.status not in _NOT_ACCEPTED:
            judge.add(index, judged.observed(point.value))
        elif judged.status is Status.UNCONFIRMED and judged.confirm is not None:
            judge.add(index, judged.observed(point.value, accepted=False))
        yield judged


class _Judge:
    """Evaluates the points of a series."""

    def __init__(self, series: Series, name: str, policy: Policy) -> None:
        self._series, self._name, self._policy = series, name, policy
        self._rule = policy.rule_of(name) or MetricRule()
        self._past: list[Observed] = []
        self._indices: list[int] = []
        self._replay = Replay()

    def add(self, index: int, entry: Observed) -> None:
        """Add a point to the history."""
        self._past.append(entry)
        self._indices.append(index)

    def restart(self, change: Alert, last: Observed) -> None:
        """Start a new history with the points of the new level and the point that shows it."""
        first = bisect_left(self._indices, change.since)
        del self._past[:first], self._indices[:first]
        self._past = [entry._replace(accepted=True) for entry in self._past]
        self.add(change.index, last)

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

        question, used = compare(Confirm()), Confirm()
        status, reason = question.judge()
        samples = () if point.confirm is None else (point.confirm, *point.more)
        asked = 0
        while Measured(question.values).needs_confirm and not used.missing:
            asked += 1
            known = samples[:asked]
            missing = "" if len(known) == asked else _NO_MORE if known else _NO_SAMPLE
            used = Confirm(known[0] if known else None, missing, more=known[1:])
            question = compare(used)
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
                confirmed=used.value is not None,
            )
        ratio_or_none = ratio if math.isfinite(ratio) else None
        return JudgedPoint(index, status, ratio_or_none, reason, change, used.value, used.more, asked)


def _size(value: float, base: float) -> float:
    """Return a relative change; 1 for a change from 0."""
    return (value - base) / abs(base) if base else 1.0
