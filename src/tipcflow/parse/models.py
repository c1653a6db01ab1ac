"""Training and evaluation lines of the `models` dialect (plain prints, no time stamp, no colour).

Training:
    [Epoch 1, iter: 4780] top1: 0.10312, top5: 0.27344, lr: 0.01000, loss: 5.34719, avg_reader_cost: 0.03644 sec,
    avg_batch_cost: 0.05536 sec, avg_samples: 64.0, avg_ips: 1156.08863 images/sec.
(one line, with a dot at its end). Evaluation, in per cent:
     * Acc@1 0.833 Acc@5 4.167
Unknown numeric pairs of a recognised line are kept under the name they are printed with.
"""

import re
from collections.abc import Iterator

from tipcflow.domain import Phase
from tipcflow.parse.metrics import normalised, unit_of
from tipcflow.parse.pairs import NUMBER, pairs
from tipcflow.parse.sample import Sample

_TRAIN = re.compile(r"\[Epoch (\d+), iter: (\d+)\]\s*(?=[A-Za-z_])")
_EVAL = re.compile(r"^\s*\* Acc@\d+ ")
_ACCURACY = re.compile(rf"(Acc@\d+) ({NUMBER})(?=\s|$)")


def is_training_line(line: str) -> bool:
    """Whether the line is a training line of this dialect."""
    return _TRAIN.search(line) is not None


def training_samples(offset: int, line: str) -> Iterator[Sample]:
    """The samples of a training line; nothing when it is none.

    Two processes that share a pipe may glue two lines together: each `[Epoch …]` head starts anew.
    """
    heads = list(_TRAIN.finditer(line))
    ends = [*(head.start() for head in heads[1:]), len(line)]
    for head, end in zip(heads, ends, strict=False):
        body = line[head.end() : end]
        for name, value, unit in pairs(body):
            metric = normalised(name)
            yield Sample(
                metric,
                value,
                unit_of(metric, unit),
                Phase.TRAIN,
                int(head[1]),
                int(head[2]),
                offset,
            )


def eval_samples(offset: int, line: str) -> Iterator[Sample]:
    """The samples of an evaluation line, in per cent; nothing when it is none."""
    if _EVAL.match(line):
        for name, number in _ACCURACY.findall(line):
            yield Sample(normalised(name), float(number), "%", Phase.EVAL, offset=offset)
