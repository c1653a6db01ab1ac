"""Series to alerts, each judged point by point as it would have been at that time."""

from collections.abc import Iterator, Sequence
from functools import partial

from tipcflow.check.detect.gate import Gate
from tipcflow.check.detect.series import Alert, Point, Series
from tipcflow.config.policy import DetectRule


def judge_series(series: Sequence[Series], rule: DetectRule) -> Iterator[tuple[Alert, ...]]:
    """The alerts of each series, in order."""
    for one in series:
        yield tuple(_alerts(one, rule))


def _alerts(series: Series, rule: DetectRule) -> Iterator[Alert]:
    gate = Gate(series.higher_is_better, rule)
    for index, point in enumerate(series.points):
        if point.value is not None:
            alert = gate.judge(index, point.value, partial(_second, point))
            if alert is not None:
                yield alert


def _second(point: Point) -> float | None:
    return point.confirm
