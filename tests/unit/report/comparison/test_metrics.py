"""Metrics side by side: what changed most in relation to its noise comes first, and unknown is never good."""

import random

import pytest

from tipcflow.check.baseline.detector_limits import metric_limits
from tipcflow.config.policy import Policy
from tipcflow.domain import MetricKey
from tipcflow.report.comparison.metrics import BETTER, UNKNOWN, WITHIN, WORSE, MetricRow, metric_rows

POLICY = Policy(name="test")
SPEED, RATE, TOP1, RATE_OF_LEARNING = (
    MetricKey("train", "", name) for name in ("batch_cost", "ips", "eval.top1", "lr")
)


def rows(
    *numbers: dict[MetricKey, float], runs: int = 20, noise: float = 0.005, evaluated: tuple[bool, ...] = ()
) -> list[MetricRow]:
    source = random.Random(3)
    past = [1 + source.gauss(0, noise) for _ in range(runs)]
    counts = evaluated or (True,) * (len(numbers) - 1)
    return metric_rows(numbers, lambda key: metric_limits(past, key.metric, POLICY), counts)


@pytest.mark.parametrize(
    ("key", "value", "verdict"),
    [
        (SPEED, 1.6, WORSE),
        (SPEED, 0.4, BETTER),
        (SPEED, 1.0, WITHIN),
        (SPEED, 1.003, WITHIN),
        (RATE, 1.6, BETTER),
        (RATE, 0.4, WORSE),
        (TOP1, 0.5, WORSE),
    ],
)
def test_direction_of_a_change_decides_the_verdict(key: MetricKey, value: float, verdict: str) -> None:
    (row,) = rows({key: 1.0}, {key: value})
    assert row.verdicts == (verdict,)
    assert row.changes == (pytest.approx(value - 1.0),)
    assert row.limit is not None


def test_values_have_the_unit_of_the_log_of_their_run() -> None:
    made = metric_rows(
        [{RATE: 1.0, TOP1: 0.9}, {RATE: 1.0, TOP1: 90.0}],
        lambda key: metric_limits([1.0] * 20, key.metric, POLICY),
        [True],
        [{RATE: "images/s"}, {RATE: "images/s", MetricKey("train", "", "top1"): "%"}],
    )
    assert {row.metric: row.units for row in made} == {"ips": ("images/s", "images/s"), "eval.top1": ("", "%")}
    (row,) = rows({RATE: 1.0}, {RATE: 1.0})
    assert (row.unit, row.units) == ("samples/s", ("samples/s", "samples/s"))


def test_the_largest_change_in_relation_to_noise_comes_first() -> None:
    other = MetricKey("train", "", "reader_cost")
    past = {SPEED.metric: [1.0 + 0.001 * (at % 3) for at in range(20)], other.metric: [1.0, 1.4] * 10}
    made = metric_rows(
        [{SPEED: 1.0, other: 1.0}, {SPEED: 1.1, other: 1.3}],
        lambda key: metric_limits(past[key.metric], key.metric, POLICY),
        [True],
    )
    assert [row.metric for row in made] == ["batch_cost", "reader_cost"]
    assert made[0].score is not None
    assert made[1].score is not None
    assert made[0].score > 3 > made[1].score
    assert [row.is_notable for row in made] == [True, False]


def test_a_short_history_has_no_noise() -> None:
    (row,) = rows({SPEED: 1.0}, {SPEED: 1.6}, runs=4)
    assert (row.noise, row.limit, row.score, row.verdicts, row.runs) == (None, None, None, (UNKNOWN,), 4)
    assert row.is_notable


def test_a_limit_is_known_before_the_noise() -> None:
    (row,) = rows({SPEED: 1.0}, {SPEED: 1.6}, runs=6)
    assert (row.noise, row.score, row.verdicts) == (None, None, (WORSE,))


def test_incomparable_metrics_are_not_evaluated() -> None:
    (row,) = rows({SPEED: 1.0}, {SPEED: 1.6}, {SPEED: 1.7}, evaluated=(False, True))
    assert row.verdicts == ("", WORSE)
    (row,) = rows({SPEED: 1.0}, {SPEED: 1.6}, evaluated=(False,))
    assert (row.verdicts, row.noise, row.limit, row.score) == (("",), None, None, None)
    assert row.changes == (pytest.approx(0.6),)


@pytest.mark.parametrize(
    ("first", "second"), [({SPEED: 1.0}, {}), ({}, {SPEED: 1.0}), ({SPEED: 0.0}, {SPEED: 1.0})]
)
def test_a_missing_value_has_no_change(first: dict[MetricKey, float], second: dict[MetricKey, float]) -> None:
    (row,) = rows(first, second)
    assert (row.changes, row.verdicts) == ((None,), ("",))


def test_metrics_without_a_better_direction_are_not_listed() -> None:
    assert rows({RATE_OF_LEARNING: 1.0}, {RATE_OF_LEARNING: 2.0}) == []
