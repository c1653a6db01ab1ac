"""How logs spell metrics and units -> our names (the registry itself is part of the domain)."""

from tipcflow.domain.metrics import METRICS, Metric, metric

__all__ = ["METRICS", "Metric", "metric", "normalised", "unit_of"]

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


def normalised(printed: str) -> str:
    """Our name of a metric as a log prints it; an unknown name stays as printed."""
    return _SAME_AS.get(printed, printed)


def unit_of(name: str, printed: str = "") -> str:
    """The unit of a value: as printed, in our spelling; else the registry's ('' when nobody knows)."""
    return _UNITS.get(printed, printed) if printed else metric(name).unit
