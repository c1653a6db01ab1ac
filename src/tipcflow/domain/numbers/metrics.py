"""The one registry of metrics: name -> unit, which direction is better, what kind of question it answers.

It is part of the vocabulary: policies name metrics, parsers produce them, checks compare them.
"""

import re
from collections.abc import Iterable
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


def _family(family: Family, better: Better, unit: str, *names: str) -> tuple[Metric, ...]:
    return tuple(Metric(name, unit, better, family) for name in names)


METRICS: dict[str, Metric] = {
    known.name: known
    for known in (
        *_family("quality", "lower", "", "loss", "ppl", "fid", "SAD", "MSE"),
        *_family("quality", "higher", "", "top1", "top5", "acc", "auc", "mIoU", "Kappa", "Dice", "Auc_roc"),
        *_family("quality", "higher", "", "mAP", "AP", "AP50", "AP75", "bbox_map", "psnr", "ssim"),
        *_family("quality", "higher", "", "precision", "recall", "hmean", "norm_edit_dis", "recall1", "recall5"),
        Metric("lr"),
        Metric("samples"),
        *_family("speed", "lower", "s", "batch_cost", "reader_cost", "epoch_time"),
        *_family("speed", "higher", "images/s", "ips", "fps"),
        *_family("speed", "higher", "samples/s", "throughput"),
        *_family("memory", "lower", "MB", "max_mem_reserved", "max_mem_allocated"),
        *_family("speed", "lower", "ms", "preprocess_time", "inference_time", "postprocess_time"),
        Metric("total_time", "s", "lower", "speed"),
        Metric("data_num"),
        *_family("memory", "lower", "MB", "cpu_rss", "gpu_rss"),
        Metric("gpu_util", "%"),
        *_family("memory", "lower", "bytes", "peak_rss", "peak_gpu"),
        Metric("wall_time", "s", "lower", "speed"),
        # The node runner's probes of the node itself: evidence about a node, never judged.
        *_family("other", "lower", "s", "probe.cpu", "probe.memory", "probe.disk"),
    )
}


PROBES = ("probe.cpu", "probe.memory", "probe.disk")


def metric(name: str) -> Metric:
    """What is known of a metric; an unknown one has no unit, no better direction, and is never judged."""
    return METRICS.get(name) or Metric(name)


# What one iteration takes, however many there are.
_BY_ITERATION = frozenset(
    {"batch_cost", "reader_cost", "ips", "fps", "throughput"}
    | {"preprocess_time", "inference_time", "postprocess_time"}
)


def by_iteration(name: str) -> bool:
    """Whether it is the speed of single iterations: comparable between a run on all data and one on a little."""
    return name in _BY_ITERATION


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# What stands beside the word loss in the name of something that is no loss.
_NO_LOSS = frozenset({"scale", "scaled", "scaling", "scaler", "weight", "weights", "coef", "coeff", "factor"})
_NO_LOSS |= {"ratio", "count", "num", "time", "cost"}
# The names under which trainings log what they minimise, the best known first.
_OBJECTIVES = ("loss", "train_loss", "total_loss", "loss_total", "avg_loss", "loss_avg")


def is_loss(name: str) -> bool:
    """Whether the name of a metric is that of a loss: `loss`, `train_loss`, `G_loss`, `loss_pixel`, `CELoss`.

    `loss_scale`, `loss_weight` and `lossless` are none.
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    return any(word == "losses" or word.endswith("loss") for word in words) and not _NO_LOSS.intersection(words)


def objective(names: Iterable[str]) -> str:
    """The one of several losses that the training as a whole minimises; '' where none is known to be.

    The losses of a GAN oppose each other: none of several losses without a total is an objective.
    """
    found = sorted(set(names))
    known = [name for name in _OBJECTIVES if name in found]
    return known[0] if known else found[0] if len(found) == 1 else ""


def judged(name: str) -> str:
    """The name itself when a policy or a target may name it.

    Raises:
        ValueError: unknown, or neither direction of it is better.
    """
    if metric(name).better == "none":
        known = ", ".join(one.name for one in METRICS.values() if one.better != "none")
        raise ValueError(f"{name!r} is no metric that can be judged; those are {known}")
    return name
