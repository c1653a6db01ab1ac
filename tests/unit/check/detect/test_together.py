"""Series of the same runs: a node's effect is not a change; later runs and other series are not used."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipcflow.check.detect import Alert, Gate, Point, Series, judge_series
from tipcflow.check.detect.together import moved_together
from tipcflow.config.policy import DetectRule

pytestmark = pytest.mark.slow

PR = DetectRule(ask=2.2)


def fleet(
    name: str, slow: dict[int, str], seed: int, *, metrics: int = 4, runs: int = 40, step: int = 99
) -> list[Series]:
    """Metrics of the same runs; slow runs on a node of their own, and from `step` on all runs are slower."""
    source = random.Random(seed)
    nodes = [slow.get(at, source.choice("ab")) for at in range(runs)]
    made = []
    for number in range(metrics):
        values = [
            100 * (1 + source.gauss(0, 0.01)) * (0.8 if at in slow else 1) * (0.93 if at >= step else 1)
            for at in range(runs)
        ]
        points = [
            Point(f"{name}{at}", nodes[at], value, 100 * (1 + source.gauss(0, 0.01)) * (0.93 if at >= step else 1))
            for at, value in enumerate(values)
        ]
        made.append(Series(f"{name}-{number}", "", True, tuple(points)))
    return made


def judged(series: list[Series]) -> list[tuple[Alert, ...]]:
    return list(judge_series(series, PR))


def before(series: Series, end: int) -> Series:
    return replace(series, points=series.points[:end])


def test_runs_of_other_series_are_ignored() -> None:
    """The last run of one fleet and the first of the next are no neighbors."""
    first, second = fleet("x", {39: "bad"}, 1), fleet("y", {8: "other"}, 2)
    assert [sorted(one) for one in moved_together(second)] == [[8]] * 4
    assert moved_together(first + second) == moved_together(first) + moved_together(second)
    assert judged(second + first) == judged(second) + judged(first)


def test_a_metric_that_misses_a_run_changes_no_order() -> None:
    """The first series lacks the run in between: two slow runs on two nodes are no neighbors all the same."""
    slow = fleet("x", {20: "bad", 22: "other"}, 3, metrics=5)
    slow[0] = replace(slow[0], points=tuple(point for at, point in enumerate(slow[0].points) if at != 21))
    assert [sorted(one) for one in moved_together(slow)] == [[20], *[[20, 22]] * 4]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 99), st.dictionaries(st.integers(0, 39), st.sampled_from("cd"), max_size=6))
def test_the_future_changes_nothing(seed: int, slow: dict[int, str]) -> None:
    series = fleet("x", slow, seed, step=30) + fleet("y", {}, seed + 1, metrics=1, step=25)
    whole = judged(series)
    for end in (9, 20, 26, 31, 33, 36):
        assert judged([before(one, end) for one in series]) == [
            tuple(alert for alert in found if alert.index < end) for found in whole
        ]


@pytest.mark.parametrize("name", ["", "same"])
def test_missing_or_repeated_run_ids_do_not_affect_later_runs(name: str) -> None:
    series = [
        replace(one, points=tuple(point._replace(run=name) for point in one.points))
        for one in fleet("x", {12: "a", 13: "b"}, 5, step=30)
    ]
    whole = judged(series)
    for end in (14, 20, 32, 36):
        assert judged([before(one, end) for one in series]) == [
            tuple(alert for alert in found if alert.index < end) for found in whole
        ]
    if not name:
        assert [judged([one])[0] for one in series] == whole


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 99))
def test_unrequested_confirm_runs_change_nothing(seed: int) -> None:
    (series,) = fleet("x", {15: "c"}, seed, metrics=1, step=25)
    requested: set[int] = set()
    gate = Gate(True, PR)
    for at, point in enumerate(series.points):
        gate.judge(at, point.value or 0.0, lambda at=at, point=point: requested.add(at) or point.confirm)
    other = replace(
        series,
        points=tuple(
            point if at in requested else point._replace(confirm=1e6) for at, point in enumerate(series.points)
        ),
    )
    assert 0 < len(requested) < len(series.points) / 2
    assert judged([other]) == judged([series])
    assert judged([series])[0], "the step was found"
