"""Detector runs: series to alerts, point by point without look-ahead."""

from collections.abc import Iterator, Sequence
from functools import partial

from tipcflow.check.detect.gate import Gate
from tipcflow.check.detect.series import Alert, Point, Series
from tipcflow.check.detect.together import moved_together
from tipcflow.config.policy import DetectRule


def judge_series(series: Sequence[Series], rule: DetectRule) -> Iterator[tuple[Alert, ...]]:
    """The alerts of each series, in order."""
    for metric_series, moved in zip(series, moved_together(series), strict=True):
        yield tuple(_alerts(metric_series, rule, moved))


def _alerts(series: Series, rule: DetectRule, moved: frozenset[int]) -> Iterator[Alert]:
    gate = Gate(series.higher_is_better, rule)
    for index, point in enumerate(series.points):
        if point.value is not None:
            alert = gate.judge(index, point.value, partial(_second, point), node_moved=index in moved)
            if alert is not None:
                yield alert


def _second(point: Point) -> float | None:
    return point.confirm
