"""How logs spell metrics and units -> our names (the registry itself is part of the domain)."""

from tipcflow.domain.numbers.metrics import METRICS, Metric, metric

__all__ = ["METRICS", "RATES", "Metric", "metric", "normalised", "unit_of"]

# Spelled differently by the suites, the same quantity.
_SAME_AS = {
    "avg_batch_cost": "batch_cost",
    "avg_reader_cost": "reader_cost",
    "data_cost": "reader_cost",
    "avg_samples": "samples",
    "avg_ips": "ips",
    "learning_rate": "lr",
    "Acc@1": "top1",
    "Acc@5": "top5",
    "avg_acc1": "top1",
    "avg_acc5": "top5",
    "top1_avg": "top1",
    "top5_avg": "top5",
    "loss_avg": "loss",
    "Loss": "loss",
    "Acc": "acc",
    "accuracy": "acc",
    "Accuracy": "acc",
    "accu": "acc",
    "Time": "batch_cost",
    "Data": "reader_cost",
    "AUC": "auc",
}
# So many per second, of what differs: images, samples, words, instances.
RATES = frozenset({"ips", "throughput", "qps", "speed"})
# PaddleClas names its learning rates after their schedules: lr(CosineAnnealingDecay).
_SCHEDULED = "lr("


def normalised(printed: str) -> str:
    """Our name of a metric as a log prints it; an unknown name stays as printed."""
    return "lr" if printed.startswith(_SCHEDULED) else _SAME_AS.get(printed, printed)


def unit_of(name: str, printed: str = "") -> str:
    """The unit of a value: as printed, in our spelling (values are never converted); else the registry's, '' when
    nobody knows, as with a speed: what it counts, only the log can tell."""
    if not printed:
        return "" if name in RATES else metric(name).unit
    return "s" if printed == "sec" else printed.removesuffix("ec") if printed.endswith("/sec") else printed
