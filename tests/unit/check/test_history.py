"""What is remembered of a run: medians and losses of the last attempt of each step."""

import math
from types import ModuleType

from tipcflow.domain import CurveKey, LossKey, MetricKey, Phase, losses_of, medians_of


def test_medians_are_of_the_last_attempt(build: ModuleType) -> None:
    first = build.series((9.0, 9.0), "batch_cost", attempt=1)
    second = build.series((1.0, 2.0, 30.0), "batch_cost", attempt=2)
    other = build.series((5.0,), "batch_cost", step="v/eval", attempt=1)
    assert medians_of([*first, *second, *other]) == {
        MetricKey("v/eval", "", "batch_cost"): 5.0,
        MetricKey("v/train", "", "batch_cost"): 2.0,
    }


def test_evaluation_and_training_are_kept_apart(build: ModuleType) -> None:
    both = [*build.series((2.0,), "loss"), *build.series((1.0,), "loss", phase=Phase.EVAL)]
    assert medians_of(both) == {MetricKey("v/train", "", "eval.loss"): 1.0, MetricKey("v/train", "", "loss"): 2.0}


def test_the_sum_over_ranks_does_not_mix_with_the_ranks(build: ModuleType) -> None:
    def peak(value: float, rank: int) -> list[object]:
        return build.series((value,), "peak_rss", rank=rank, phase=Phase.RESOURCE)

    assert medians_of([*peak(10.0, 0), *peak(12.0, 1), *peak(99.0, -1)]) == {
        MetricKey("v/train", "", "peak_rss"): 11.0,
        MetricKey("v/train", "", "peak_rss.all"): 99.0,
    }


def test_values_other_than_numbers_are_omitted_from_medians_only(build: ModuleType) -> None:
    series = build.series((math.nan, 1.0, math.inf, 3.0))
    assert medians_of(series) == {MetricKey("v/train", "", "loss"): 2.0}
    assert medians_of(build.series((math.nan,))) == {}
    assert len(losses_of(series)[LossKey("v/train", CurveKey("alpha", 0))]) == 4


def test_losses_are_returned_in_logged_order(build: ModuleType) -> None:
    shuffled = list(reversed(build.measurements()))
    assert losses_of(shuffled)[LossKey("v/train", CurveKey("alpha", 0))] == build.CURVE
    assert set(losses_of(shuffled)) == {
        LossKey("v/train", CurveKey("alpha", 0)),
        LossKey("v/train", CurveKey("beta", 1)),
    }
