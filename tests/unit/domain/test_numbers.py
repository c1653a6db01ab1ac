"""The numbers by which runs are compared: without warm-up, of repeats as one, of evaluations the last, by rank."""

import math
from typing import Any

import pytest

from tipcflow.domain import Measurement, MetricKey, Phase, numbers_of, plain_metric, without_repeat


def samples(metric: str, values: list[float], **fields: Any) -> list[Measurement]:
    known: dict[str, Any] = {"run": "r", "step": "v/train", "node": "a", "rank": 0, "phase": Phase.TRAIN}
    return [
        Measurement(metric=metric, ordinal=at, value=value, **(known | fields)) for at, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("cold", "warm", "expected"),
    [
        (50, 100, 1.0),  # the rule: 50 of 150
        (100, 200, 1.0),  # never more than 50: 50 of 300 are left out, 50 cold ones stay
        (2, 4, 1.0),
        (1, 1, 5.0),  # two samples have no third
    ],
)
def test_the_warm_up_of_a_training_is_left_out(cold: int, warm: int, expected: float) -> None:
    numbers = numbers_of(samples("batch_cost", [9.0] * cold + [1.0] * warm))
    assert numbers[MetricKey("v/train", "", "batch_cost")] == expected


def test_a_cold_half_of_a_short_training_does_not_count() -> None:
    """The median of all samples would be half a warm-up."""
    values = [9.0, 9.0, 9.0, 1.0, 1.0, 1.0]
    assert numbers_of(samples("batch_cost", values))[MetricKey("v/train", "", "batch_cost")] == 1.0
    assert numbers_of(samples("loss", values))[MetricKey("v/train", "", "loss")] == 5.0, "a loss has no warm-up"
    infer = samples("inference_time", values, phase=Phase.INFER, leg="l")
    assert numbers_of(infer)[MetricKey("v/train", "l", "inference_time")] == 5.0, (
        "AutoLog leaves its own warm-up out"
    )


def test_every_rank_has_a_warm_up() -> None:
    both = [*samples("ips", [1.0, 8.0, 8.0]), *samples("ips", [1.0, 10.0, 10.0], rank=1, node="b")]
    assert numbers_of(both) == {MetricKey("v/train", "", "ips"): 9.0}


def test_of_repeats_the_median_counts() -> None:
    five = [
        one
        for repeat, cost in enumerate([1.0, 1.1, 7.0, 0.9, 1.05], 1)
        for one in samples("batch_cost", [cost] * repeat, step=f"v_repeat_{repeat}/train")
    ]
    assert numbers_of(five) == {MetricKey("v/train", "", "batch_cost"): 1.05}, (
        "each counts once, however many samples it has"
    )
    assert without_repeat("v_repeat_12/infer_cpu") == "v/infer_cpu"
    assert without_repeat("v_repeat_x/train") == "v_repeat_x/train"


def test_of_evaluations_the_last_of_rank_0_counts() -> None:
    result = [
        *samples("top1", [0.1, 0.5, 0.9], phase=Phase.EVAL),
        *samples("top1", [0.1, 0.5, 0.2], phase=Phase.EVAL, rank=1),
    ]
    assert numbers_of(result) == {MetricKey("v/train", "", "eval.top1"): 0.9}


def test_memory_is_reported_by_rank_or_of_all_together() -> None:
    def peak(value: float, rank: int) -> list[Measurement]:
        return samples("peak_rss", [value], phase=Phase.RESOURCE, rank=rank)

    assert numbers_of([*peak(10.0, 0), *peak(12.0, 11), *peak(99.0, -1)]) == {
        MetricKey("v/train", "", "peak_rss.rank0"): 10.0,
        MetricKey("v/train", "", "peak_rss.rank11"): 12.0,
        MetricKey("v/train", "", "peak_rss.all"): 99.0,
    }
    names = ["peak_rss.rank11", "peak_rss.all", "eval.top1", "ips"]
    assert [plain_metric(name) for name in names] == ["peak_rss", "peak_rss", "top1", "ips"]


def test_only_the_last_attempt_and_only_numbers() -> None:
    result = [*samples("ips", [5.0], attempt=1), *samples("ips", [math.nan, 7.0, math.inf], attempt=2)]
    assert numbers_of(result) == {MetricKey("v/train", "", "ips"): 7.0}
    assert numbers_of(samples("ips", [math.nan])) == {}


SLOWEST = MetricKey("v/train", "", "batch_cost.slowest")


def test_the_slowest_rank_counts_with_all_of_its_iterations() -> None:
    fast, late = [1.0] * 60, [1.0] * 40 + [4.0] * 20
    numbers = numbers_of([*samples("batch_cost", fast), *samples("batch_cost", late, rank=1)])
    assert numbers[SLOWEST.of("batch_cost")] == 1.0
    # 20 of 40 counted iterations take 4 s; two at each end are left out.
    assert numbers[SLOWEST] == pytest.approx((18 * 1.0 + 18 * 4.0) / 36)
    rates = [*samples("ips", [1 / one for one in fast]), *samples("ips", [1 / one for one in late], rank=1)]
    assert numbers_of(rates)[SLOWEST.of("ips.slowest")] < 0.7, "the slowest rank has the lowest rate"


def test_a_mean_needs_20_samples_and_forgives_single_ones() -> None:
    assert SLOWEST not in numbers_of(samples("batch_cost", [1.0] * 28))
    assert numbers_of(samples("batch_cost", [1.0] * 59 + [50.0]))[SLOWEST] == 1.0
    assert SLOWEST.of("loss.slowest") not in numbers_of(samples("loss", [1.0] * 60))
