"""Registry of metrics: name -> unit, better direction, family (docs/reference/metrics.md).

Policies name metrics, parsers produce them, checks compare them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal

from tipcflow.domain.keys import EVAL

Better = Literal["higher", "lower", "none"]
Family = Literal["speed", "memory", "quality", "other"]


@dataclass(frozen=True)
class Metric:
    """A registered metric.

    Attributes:
        unit: unit of stored values; a format that prints another unit sets it in the sample.
        better: `none` if neither direction is a defect (lr, samples, data_num).
        family: the check that compares the metric with the baseline; `other` is stored and shown, never evaluated.
    """

    name: str
    unit: str = ""
    better: Better = "none"
    family: Family = "other"


def _family(family: Family, better: Better, unit: str, *names: str) -> tuple[Metric, ...]:
    return tuple(Metric(name, unit, better, family) for name in names)


METRICS: dict[str, Metric] = {
    definition.name: definition
    for definition in (
        *_family("quality", "lower", "", "loss", "ppl", "fid", "SAD", "MSE"),
        *_family("quality", "higher", "", "top1", "top5", "acc", "auc", "mIoU", "Kappa", "Dice", "Auc_roc"),
        *_family("quality", "higher", "", "mAP", "AP", "AP50", "AP75", "bbox_map", "psnr", "ssim"),
        *_family("quality", "higher", "", "precision", "recall", "hmean", "norm_edit_dis", "recall1", "recall5"),
        Metric("lr"),
        Metric("samples"),
        *_family("speed", "lower", "s", "batch_cost", "reader_cost", "epoch_time"),
        # Suites print images, instances or sequences per second, which are samples.
        *_family("speed", "higher", "samples/s", "ips", "throughput", "interval_samples_per_second"),
        Metric("fps", "images/s", "higher", "speed"),
        *_family("speed", "higher", "", "qps", "interval_steps_per_second"),
        *_family("speed", "lower", "s", "time_each_step", "interval_runtime"),
        *_family("memory", "lower", "MB", "max_mem_reserved", "max_mem_allocated"),
        *_family("speed", "lower", "ms", "preprocess_time", "inference_time", "postprocess_time"),
        Metric("total_time", "s", "lower", "speed"),
        Metric("data_num"),
        *_family("memory", "lower", "MB", "cpu_rss", "gpu_rss"),
        Metric("gpu_util", "%"),
        *_family("memory", "lower", "bytes", "peak_rss", "peak_gpu"),
        Metric("wall_time", "s", "lower", "speed"),
        # The node runner's probes: evidence about a node, never evaluated.
        *_family("other", "lower", "s", "probe.cpu", "probe.memory", "probe.disk"),
    )
}


PROBES = ("probe.cpu", "probe.memory", "probe.disk")


class Scope(StrEnum):
    """What the values of a metric are of, by the first part of its name (`epoch.loss`).

    `PLAIN` is a logged iteration of a training or a whole evaluation, `BEST` the best value so far; `EVALUATION`
    are evaluations in `numbers_of`.
    """

    PLAIN = ""
    EPOCH = "epoch"
    BATCH = "batch"
    BEST = "best"
    EVALUATION = EVAL.removesuffix(".")

    @property
    def is_plain(self) -> bool:
        """Whether the values are not means of epochs, of single batches, or the best so far."""
        return self not in (Scope.EPOCH, Scope.BATCH, Scope.BEST)

    @property
    def prefix(self) -> str:
        """How names of this scope start."""
        return f"{self.value}." if self else ""


@lru_cache(maxsize=1024)
def scope_of(name: str) -> Scope:
    """Return the scope of a metric by its name."""
    first, dot, _ = name.partition(".")
    return next((scope for scope in Scope if dot and scope == first), Scope.PLAIN)


@lru_cache(maxsize=1024)
def metric(name: str) -> Metric:
    """The registered metric. A loss by its name is better when lower, except the loss of one batch or the best
    one; any other unknown metric has no unit and no better direction, and is never evaluated."""
    if name in METRICS:
        return METRICS[name]
    is_whole = scope_of(name).is_plain
    return Metric(name, "", "lower", "quality") if is_whole and is_loss(name) else Metric(name)


# Speeds of a single iteration, independent of the number of iterations.
_BY_ITERATION = frozenset(
    {"batch_cost", "reader_cost", "ips", "fps", "throughput", "qps", "time_each_step"}
    | {"interval_runtime", "interval_samples_per_second", "interval_steps_per_second"}
    | {"preprocess_time", "inference_time", "postprocess_time"}
)


def by_iteration(name: str) -> bool:
    """Whether the metric is the speed of single iterations, comparable between runs on all and on little data."""
    return name in _BY_ITERATION


# Measures of a training's speed, the most direct first; the node runner measures the last one.
_TRAINING_SPEEDS = (
    *("batch_cost", "time_each_step", "interval_runtime", "ips", "throughput", "interval_samples_per_second"),
    *("interval_steps_per_second", "qps", "fps", "epoch_time", "wall_time"),
)


def training_speed(names: Iterable[str]) -> str:
    """The metric that shows a training's speed, of those that it has; '' if it has none."""
    available = set(names)
    return next((name for name in _TRAINING_SPEEDS if name in available), "")


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Words in names that contain `loss` but are not losses.
_NO_LOSS = frozenset({"scale", "scaled", "scaling", "scaler", "weight", "weights", "coef", "coeff", "factor"})
_NO_LOSS |= {"ratio", "count", "num", "time", "cost"}
# Names of the objective, the most common first.
_OBJECTIVES = ("loss", "train_loss", "total_loss", "loss_total", "avg_loss", "loss_avg")


def is_loss(name: str, listed: Iterable[str] = ()) -> bool:
    """Whether a metric is a loss: `loss`, `train_loss`, `G_loss`, `loss_pixel`, `CELoss`.

    `loss_scale`, `loss_weight` and `lossless` are not.

    Args:
        listed: patterns (`*` and `?` match) of further names that the suite declares to be losses.
    """
    if any(fnmatchcase(name, pattern) for pattern in listed):
        return True
    words = [word.lower() for word in _WORDS.findall(name)]
    return any(word == "losses" or word.endswith("loss") for word in words) and not _NO_LOSS.intersection(words)


def objective(names: Iterable[str]) -> str:
    """The loss that the training minimizes as a whole; '' if unknown.

    Several losses without a total have no objective, because the losses of a GAN oppose each other.
    """
    candidates = sorted(set(names))
    totals = [name for name in _OBJECTIVES if name in candidates]
    return totals[0] if totals else candidates[0] if len(candidates) == 1 else ""


def judged(name: str) -> str:
    """Validate a metric name in a policy or target.

    Raises:
        ValueError: the metric is unknown, or neither direction is better.
    """
    if metric(name).better == "none":
        evaluable = ", ".join(definition.name for definition in METRICS.values() if definition.better != "none")
        raise ValueError(f"metric {name!r} cannot be evaluated; expected one of {evaluable}")
    return name
