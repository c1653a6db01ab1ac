"""Which metrics show a chain, and the status of the last value."""

import pytest

from tipcflow.check.baseline.detector_limits import metric_limits
from tipcflow.config.policy import Policy
from tipcflow.domain import MetricKey
from tipcflow.report.chain.history import MetricHistory, main_metrics, metric_history
from tipcflow.report.chain.tables import baseline

POLICY = Policy(name="p")
TRAIN = "v/train"


def row(name: str, past: list[float], *values: float | None, leg: str = "") -> MetricHistory:
    key = MetricKey(TRAIN, leg, name)
    known = metric_limits(past, name, POLICY)
    ids = [f"run-{number}" for number in range(len(past))]
    return metric_history(key, values, known, past=ids, main=True, target=None, pinned=None, decisions=())


def test_main_metrics_are_direct_speed_and_largest_rank() -> None:
    names = ("batch_cost", "batch_cost.slowest", "ips", "reader_cost", "peak_rss.rank0", "peak_rss.rank1")
    last = {MetricKey(TRAIN, "", name): float(at) for at, name in enumerate((*names, "peak_rss.all", "eval.top1"))}
    last |= {MetricKey("v/infer", "cpu", name): 1.0 for name in ("inference_time", "preprocess_time")}
    chosen = {(key.leg, key.metric) for key in main_metrics(last, [TRAIN])}
    assert chosen == {("", "batch_cost"), ("", "peak_rss.rank1"), ("", "eval.top1"), ("cpu", "inference_time")}


@pytest.mark.parametrize(
    ("name", "values", "verdict"),
    [
        ("batch_cost", (1.0, 2.0), "worse"),
        ("batch_cost", (1.0, 0.3), "better"),
        ("ips", (1.0, 2.0), "better"),
        ("ips", (2.0, 1.0, None), "within limit"),
        ("ips", (None,), "limit unknown"),
    ],
)
def test_last_value_decides_the_verdict(name: str, values: tuple[float | None, ...], verdict: str) -> None:
    assert row(name, [1.0, 1.01, 0.99] * 4, *values).verdict == verdict


@pytest.mark.parametrize(
    ("past", "text"),
    [
        ([], "no accepted run"),
        ([0.2] * 3, "0.2 s, noise known after 5 more runs"),
        ([0.2, 0.2002, 0.1998] * 4, "0.2 s ± 25.4 %"),
    ],
)
def test_the_baseline_is_printed_as_text(past: list[float], text: str) -> None:
    assert baseline(row("batch_cost", past, 0.2), POLICY.detect.min_history) == text
