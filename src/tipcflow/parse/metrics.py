"""Maps printed metric names and units to tipcflow names (the registry itself is in the domain layer)."""

from tipcflow.domain.numbers.metrics import METRICS, Metric, metric

__all__ = ["METRICS", "RATES", "Metric", "metric", "normalised", "unit_of"]

# The suites' different names of the same metric.
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
# Rates per second; the unit that is counted differs: images, samples, words, instances.
RATES = frozenset({"ips", "throughput", "qps", "speed"})
# PaddleClas names its learning rates after their schedules: lr(CosineAnnealingDecay).
_SCHEDULED = "lr("


def normalised(printed: str) -> str:
    """Return the tipcflow name of a printed metric; an unknown name is unchanged."""
    return "lr" if printed.startswith(_SCHEDULED) else _SAME_AS.get(printed, printed)


def unit_of(name: str, printed: str = "") -> str:
    """Return the unit of a value: the printed one in tipcflow's spelling (values are never converted), otherwise
    the registry's; '' if unknown, for example for a rate, because only the log defines what it counts."""
    if not printed:
        return "" if name in RATES else metric(name).unit
    return "s" if printed == "sec" else printed.removesuffix("ec") if printed.endswith("/sec") else printed
