"""The metrics of a pull request's run against those of its base."""

from tipcflow.domain import MetricKey
from tipcflow.report.overview.pulls import PullChain, changes_of

SPEED, IPS = MetricKey("v/train", "", "batch_cost"), MetricKey("v/train", "", "ips")
TOP1 = MetricKey("v/eval", "", "eval.top1")
FIRST, SECOND = MetricKey("v/infer_cpu", "a", "inference_time"), MetricKey("v/infer_cpu", "b", "inference_time")


def test_of_each_group_the_metric_that_is_worse_by_most() -> None:
    base = {SPEED: 0.1, IPS: 640.0, TOP1: 0.5, FIRST: 10.0, SECOND: 10.0}
    new = {SPEED: 0.112, IPS: 576.0, TOP1: 0.51, FIRST: 9.0, SECOND: 10.5}
    rows = changes_of(base, new)
    assert [row.text for row in rows] == ["batch_cost +12.0 %", "inference_time b +5.0 %", "eval.top1 +2.0 %"]
    assert [row.is_worse for row in rows] == [True, True, False]


def test_metrics_without_a_base_or_a_better_direction_are_left_out() -> None:
    loss = MetricKey("v/train", "", "loss")
    assert changes_of({SPEED: 0.0}, {SPEED: 1.0, TOP1: 0.5}) == ()
    assert changes_of({}, {loss: 1.0}) == ()


def test_minutes_are_real_and_predicted_ones_as_far_as_known() -> None:
    chain = PullChain(chain="s/a/train", run="r", status=None, reason="", base="", selected="")
    texts = [
        chain.model_copy(update={"predicted_s": plan, "took_s": took}).minutes
        for plan, took in ((0, 0), (312, 0), (312, 353), (0, 30))
    ]
    assert texts == ["", "predicted 5.2", "5.9, predicted 5.2", "0.5"]
