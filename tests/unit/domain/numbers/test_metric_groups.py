"""Groups of metrics."""

import pytest

from tipcflow.domain import MetricKey
from tipcflow.domain.numbers.metric_groups import Group, group_of


@pytest.mark.parametrize(
    ("name", "leg", "group"),
    [
        ("ips", "", Group.SPEED),
        ("inference_time", "cpu", Group.LATENCY),
        ("eval.top1", "", Group.ACCURACY),
        ("peak_gpu.rank3", "", Group.MEMORY),
        ("cpu_rss", "cpu", Group.MEMORY),
        ("loss", "", Group.OTHER),
    ],
)
def test_metrics_are_grouped_by_step_and_leg(name: str, leg: str, group: Group) -> None:
    assert group_of(MetricKey("v/train", leg, name)) is group
