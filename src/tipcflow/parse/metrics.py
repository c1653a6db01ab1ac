"""The one registry of metrics: name -> unit, which direction is better, what kind of question it answers."""

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
        Metric("rss", "bytes"),
        Metric("wall_time", "s", "lower", "speed"),
    )
}

# Spelled differently by the suites, the same quantity.
_SAME_AS = {
    "avg_batch_cost": "batch_cost",
    "avg_reader_cost": "reader_cost",
    "avg_samples": "samples",
    "avg_ips": "ips",
    "Acc@1": "top1",
    "Acc@5": "top5",
}

# Printed unit -> the unit that is stored. Values are never converted: only spellings of one unit are joined.
_UNITS = {
    "sec": "s",
    "s": "s",
    "ms": "ms",
    "images/sec": "images/s",
    "images/s": "images/s",
    "MB": "MB",
    "%": "%",
}


def metric(name: str) -> Metric:
    """What is known of a metric; an unknown one has no unit, no better direction, and is never judged."""
    return METRICS.get(name) or Metric(name)


def normalised(printed: str) -> str:
    """Our name of a metric as a log prints it; an unknown name stays as printed."""
    return _SAME_AS.get(printed, printed)


def unit_of(name: str, printed: str = "") -> str:
    """The unit of a value: as printed, in our spelling; else the registry's ('' when nobody knows)."""
    return _UNITS.get(printed, printed) if printed else metric(name).unit
