"""Groups of metrics: what a reader compares together."""

from enum import StrEnum

from tipcflow.domain.keys import MetricKey
from tipcflow.domain.numbers.metrics import Scope, metric, scope_of


class Group(StrEnum):
    """Groups of metrics, in the order of the page."""

    SPEED = "training speed"
    LATENCY = "inference latency"
    ACCURACY = "accuracy"
    MEMORY = "memory"
    OTHER = "other metrics"


def group_of(key: MetricKey) -> Group:
    """Return the group of a metric."""
    family = metric(key.plain_metric).family
    if family == "memory":
        return Group.MEMORY
    if scope_of(key.metric) is Scope.EVALUATION:
        return Group.ACCURACY
    if family == "speed":
        return Group.LATENCY if key.leg else Group.SPEED
    return Group.OTHER
