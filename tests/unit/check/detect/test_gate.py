"""The gate on small series: what it raises, when, and what it leaves alone."""

import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipcflow.check.detect import Alert, Gate, Point, Series, judge_series, read_series
from tipcflow.config.policy import DetectRule

RULE = DetectRule()
PR = DetectRule(ask=2.2)


def series(values: list[float | None], confirm: list[float] | None = None, **more: object) -> Series:
    points = tuple(
        Point(f"r{at}", f"n{at % 2}", value, confirm[at] if confirm else None) for at, value in enumerate(values)
    )
    return Series(**{"id": "s", "unit": "s", "higher_is_better": True, "points": points, **more})


def noisy(level: float, count: int, seed: int, sigma: float = 0.01) -> list[float]:
    source = random.Random(seed)
    return [level * (1 + source.gauss(0, sigma)) for _ in range(count)]


def alerts(one: Series, rule: DetectRule = PR) -> tuple[Alert, ...]:
    (found,) = judge_series([one], rule)
    return found


def test_step_raises_an_alert_at_once_if_the_confirm_run_agrees() -> None:
    values = noisy(100, 40, 1) + noisy(93, 20, 2)
    (found,) = alerts(series(values, noisy(100, 40, 3) + noisy(93, 20, 4)))
    assert (found.index, found.since, found.direction, found.confirmed) == (40, 40, "worse", True)
    assert found.size == pytest.approx(-0.07, abs=0.02)
    assert 0.999 < found.confidence <= 1


def test_values_that_earlier_runs_had_are_hardly_evidence() -> None:
    """A change to a level at which some earlier runs were needs one more run than one to a new level."""
    values, confirm = noisy(100, 40, 1) + noisy(96, 20, 2, 0.001), noisy(100, 40, 3) + noisy(96, 20, 4, 0.001)
    assert [one.index for one in alerts(series(values, confirm))] == [40]
    for at in (5, 17, 29):
        values[at] = 96.0
    (found,) = alerts(series(values, confirm))
    assert 41 <= found.index <= 44
    assert found.since == 40


def test_change_without_confirm_runs_requires_a_second_run() -> None:
    (found,) = alerts(series(noisy(100, 40, 1) + noisy(93, 20, 2)))
    assert (found.index, found.confirmed) == (41, False)


def test_the_same_change_is_worse_or_better_by_the_metric() -> None:
    values = noisy(100, 40, 1) + noisy(107, 20, 2)
    assert [one.direction for one in alerts(series(values))] == ["better"]
    (found,) = alerts(series(values, higher_is_better=False))
    assert (found.direction, found.size > 0) == ("worse", True), "the size is that of the values"


def test_outlier_is_not_a_change_point() -> None:
    values = noisy(100, 60, 1)
    values[30] = 60.0
    assert alerts(series(values)) == ()
    assert alerts(series(values, noisy(100, 60, 2))) == ()


def test_a_step_and_its_recovery_are_two() -> None:
    found = alerts(series(noisy(100, 30, 1) + noisy(90, 12, 2) + noisy(100, 20, 3)))
    assert [one.direction for one in found] == ["worse", "better"]
    assert found[0].index < 42 <= found[1].index


def test_a_change_among_the_first_runs_is_found_later() -> None:
    (found,) = alerts(series(noisy(100, 6, 1) + noisy(90, 14, 2)))
    assert (found.direction, found.since in (6, 7)) == ("worse", True)


def test_noise_drift_and_constants_are_quiet() -> None:
    drifting = [value * (1 + 0.01 * at / 52) for at, value in enumerate(noisy(100, 104, 5, 0.005))]
    for values in (noisy(100, 104, 1), noisy(0.001, 104, 2, 0.03), drifting, [5.0] * 50, [0.0] * 50):
        assert alerts(series(values, values[::-1])) == ()


def test_zero_and_negative_levels() -> None:
    (found,) = alerts(series([0.0] * 20 + [3.0] * 5))
    assert (found.direction, found.size) == ("better", 1.0), "from nothing every change is the whole"
    (found,) = alerts(series([-value for value in noisy(100, 30, 1) + noisy(107, 10, 2)]))
    assert (found.direction, found.size) == ("worse", pytest.approx(-0.07, abs=0.02))


def test_gaps_are_not_runs() -> None:
    values: list[float | None] = [*noisy(100, 40, 1), None, None, *noisy(90, 10, 2)]
    (found,) = alerts(series(values))
    assert found.index == 43


def test_the_future_changes_nothing() -> None:
    values, confirm = noisy(100, 40, 1) + noisy(95, 30, 2), noisy(100, 40, 3) + noisy(95, 30, 4)
    whole = alerts(series(values, confirm))
    for end in range(1, len(values)):
        assert alerts(series(values[:end], confirm)) == tuple(one for one in whole if one.index < end)


def test_confirm_runs_are_used_only_on_request() -> None:
    looked: list[int] = []
    gate = Gate(True, PR)
    values = noisy(100, 60, 1)
    values[30] = 60.0
    for at, value in enumerate(values):
        gate.judge(at, value, lambda at=at: looked.append(at) or 100.0)
    assert 30 in looked
    assert len(looked) == gate.requests < 5


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 1.0]), max_size=40),
    st.booleans(),
)
def test_any_numbers_have_a_result_that_json_can_store(values: list[float], confirm: bool) -> None:
    for one in alerts(series(list(values), values if confirm else None)):
        assert math.isfinite(one.size)
        assert one.size != 0
        assert 0 < one.confidence <= 1


def test_metrics_of_one_node_that_move_together_are_the_node() -> None:
    """Without confirm runs, two slow weeks on one node raise no alert; two on one metric alone do."""

    def fleet(slow: tuple[int, ...]) -> list[Series]:
        made = []
        for number in range(5):
            values = noisy(100, 60, number)
            for week in (30, 31):
                values[week] *= 0.85 if number in slow else 1
            points = tuple(Point(f"w{at}", "n0", value) for at, value in enumerate(values))
            made.append(Series(str(number), "", True, points))
        return made

    assert [bool(found) for found in judge_series(fleet((0, 1, 2, 3, 4)), PR)] == [False] * 5
    assert [bool(found) for found in judge_series(fleet((2,)), PR)] == [False, False, True, False, False]


def test_common_permanent_change_is_detected() -> None:
    made = []
    for number in range(5):
        values = noisy(100, 40, number) + noisy(90, 20, 100 + number)
        made.append(
            Series(str(number), "", True, tuple(Point(f"w{at}", "n0", one) for at, one in enumerate(values)))
        )
    for found in judge_series(made, PR):
        assert [one.direction for one in found] == ["worse"]
        assert found[0].index < 52


def line(**changes: object) -> str:
    value = {"id": "a", "unit": "s", "direction": "higher", "points": [], **changes}
    return json.dumps({key: one for key, one in value.items() if one is not None})


def test_reading_a_series_keeps_medians_and_confirm_values() -> None:
    text = line(points=[{"run": "r", "node": "n", "samples": [3, 1, 2.5], "confirm": [4]}], more=1)
    (found,) = read_series([text, "\n"], file="f")
    assert found == Series("a", "s", True, (Point("r", "n", 2.5, 4.0),))
