"""The one registry of metrics: name -> unit, which direction is better, what kind of question it answers.

It is part of the vocabulary: policies name metrics, parsers produce them, checks compare them.
"""

from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower", "none"]
Family = Literal["speed", "memory", "quality", "other"]


@dataclass(frozen=True)
class Metric:
    """What is known of a metric.

    Attributes:
        unit: the unit its values are stored in; a format that prints another one says so in the sample.
        better: `none` where neither direction is a defect (lr, samples, data_num).
        family: which check compares it with the baseline; `other` is stored and shown, never judged.
    """

    name: str
    unit: str = ""
    better: Better = "none"
    family: Family = "other"


METRICS: dict[str, Metric] = {
    known.name: known
    for known in (
        Metric("loss", "", "lower", "quality"),
        Metric("top1", "", "higher", "quality"),
        Metric("top5", "", "higher", "quality"),
        Metric("lr"),
        Metric("samples"),
        Metric("batch_cost", "s", "lower", "speed"),
        Metric("reader_cost", "s", "lower", "speed"),
        Metric("ips", "images/s", "higher", "speed"),
        Metric("preprocess_time", "ms", "lower", "speed"),
        Metric("inference_time", "ms", "lower", "speed"),
        Metric("postprocess_time", "ms", "lower", "speed"),
        Metric("total_time", "s", "lower", "speed"),
        Metric("data_num"),
        Metric("cpu_rss", "MB", "lower", "memory"),
        Metric("gpu_rss", "MB", "lower", "memory"),
        Metric("gpu_util", "%"),
        Metric("peak_rss", "bytes", "lower", "memory"),
        Metric("peak_gpu", "bytes", "lower", "memory"),
        Metric("wall_time", "s", "lower", "speed"),
    )
}


def metric(name: str) -> Metric:
    """What is known of a metric; an unknown one has no unit, no better direction, and is never judged."""
    return METRICS.get(name) or Metric(name)


def judged(name: str) -> str:
    """The name itself when a policy or a target may name it.

    Raises:
        ValueError: unknown, or neither direction of it is better.
    """
    if metric(name).better == "none":
        known = ", ".join(one.name for one in METRICS.values() if one.better != "none")
        raise ValueError(f"{name!r} is no metric that can be judged; those are {known}")
    return name
