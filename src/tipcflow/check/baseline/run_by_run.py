"""Retrospective evaluation: each run of a series evaluated with the data known at its time."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tipcflow.check.baseline.comparison import Confirm, Question
from tipcflow.check.baseline.level import level_of
from tipcflow.check.detect import Point, Series
from tipcflow.config.policy import MetricRule, Policy
from tipcflow.domain import ConfigError, Status, plain_metric
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
    """

    index: int
    status: Status
    ratio: float | None
    reason: str


def number_name(name: str, policy: Policy) -> str:
    """The number (as `numbers_of` names it) that a policy judges under this metric's name.

    Raises:
        ConfigError: the policy does not judge the metric.
    """
    for one in (name, f"eval.{name}"):
        if policy.rule_of(one) is not None and metric(plain_metric(one)).better != "none":
            return one
    evaluated = {one for one in METRICS if policy.rule_of(f"eval.{one}") is not None}
    known = sorted({*policy.metrics} | evaluated)
    raise ConfigError(
        f"policy {policy.name} does not judge this metric", key="--metric", found=name, expected=", ".join(known)
    )


def judge_run_by_run(series: Series, name: str, policy: Policy) -> Iterator[JudgedPoint]:
    """The answer for each point, in order, from the points before it that would have been accepted.

    A confirm sample is looked at only where the checks ask for a confirm run. Where it is missing then, the
    confirm run measured nothing.

    Args:
        name: of the number, as `number_name` says; the series says itself which direction is better.
    """
    rule = policy.rule_of(name) or MetricRule()
    accepted: list[float] = []
    for index, point in enumerate(series.points):
        if point.value is None:
            yield JudgedPoint(index, Status.NOT_RUN, None, "the run has no samples")
            continue
        judged = _judged(index, point, point.value, series, accepted, name, rule, policy)
        if judged.status not in _NOT_ACCEPTED:
            accepted.append(point.value)
        yield judged


def _judged(
    index: int,
    point: Point,
    value: float,
    series: Series,
    accepted: list[float],
    name: str,
    rule: MetricRule,
    policy: Policy,
) -> JudgedPoint:
    past = accepted[-policy.history :]
    level = level_of(past, name, policy, higher_is_better=series.higher_is_better)
    better: Better = "higher" if series.higher_is_better else "lower"

    def asked(confirm: Confirm) -> Question:
        return Question(name, value, past, rule, policy, confirm, better=better, unit=series.unit, level=level)

    question = asked(Confirm())
    status, reason = question.answer()
    if question.values.get("confirm"):
        missing = "" if point.confirm is not None else _NO_SAMPLE
        question = asked(Confirm(point.confirm, missing))
        status, reason = question.answer()
    ratio = question.values.get("ratio", math.nan)
    return JudgedPoint(index, status, ratio if math.isfinite(ratio) else None, reason)
