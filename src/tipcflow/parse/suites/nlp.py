"""Line formats of PaddleNLP, PaddleX, PLSC and all other trainings that print `name: value` pairs.

    [2022-05-01 10:00:00,123] [    INFO] - global step 10, epoch: 1, batch: 9, rank_id: 0, loss: 0.480512, lr:
    0.00002, avg_batch_cost: 0.2 sec, ips: 160.1 sequences/sec
    loss: 2.345, learning_rate: 1e-05, global_step: 10, interval_runtime: 1.2, interval_samples_per_second: 6.6
    2021-05-01 10:00:00 [INFO]	[TRAIN] Epoch=1/12, Step=10/50, loss=1.2, lr=0.001, time_each_step=0.5s, eta=0:10:0
    2021-05-01 10:00:09 [INFO]	[EVAL] Finished, Epoch=1, bbox_map=12.3 .
    2021-05-01 10:00:09 [INFO]	[TRAIN] Epoch 1 finished, loss=1.3, lr=0.001 .
    [2021-03-12 10:00:00,123][INFO]  pass 0, batch 150, loss: 40.1, lr: 0.1, elapsed: 0.3, throughput: 400.5 …
    eval loss: 0.39, acc: 0.85

(each training line is one line in the log). A training line has a loss together with a speed, a time, a
learning rate or an accuracy, or it has a throughput alone.
"""

import re

from tipcflow.domain import Phase
from tipcflow.domain.numbers.metrics import Scope
from tipcflow.parse.rules.groups_and_pairs import PairsRule
from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.rules.reading import INDEX

_LOSS = frozenset({"loss", "train_loss"})
_SPEED = frozenset({"ips", "qps", "throughput", "speed"})
_BESIDES = _SPEED | {
    "lr", "batch_cost", "reader_cost", "samples", "time", "time_each_step", "elapsed", "acc", "top1", "auc", "ppl",
    "interval_runtime", "interval_samples_per_second", "interval_steps_per_second",
    "train_runtime", "train_samples_per_second", "train_steps_per_second",
}  # fmt: skip
# Epoch or step as a word of the sentence instead of a pair.
_WHERE = re.compile(
    rf"\A(?=(?:.*?\b[Ee]poch[\W_]{{0,3}}(?P<epoch>{INDEX}+)(?!\.?\d))?)"
    rf"(?=(?:.*?\bglobal[ _]step\W{{0,3}}(?P<iteration>{INDEX}+)(?!\.?\d))?)"
)
# A line of an object that spans several lines; its unit is on another line (`tipcflow.parse.reports.objects`).
_NO_MEMBER = r'\A(?!\s*"[^"]*"\s*:[^:]*\Z)'
_SPEED_ALONE = re.compile(rf"{_NO_MEMBER}{_WHERE.pattern}")

FORMAT = LineFormat(
    "nlp",
    training=(
        PairsRule(
            re.compile(rf"\[TRAIN\]\s+Epoch=(?P<epoch>{INDEX})/\d+, Step=(?P<iteration>{INDEX})/\d+,"),
            Phase.TRAIN,
            "[TRAIN]",
        ),
        PairsRule(
            re.compile(rf"\[TRAIN\]\s+Epoch (?P<epoch>{INDEX}) finished,"),
            Phase.TRAIN,
            " finished,",
            prefix=Scope.EPOCH.prefix,
        ),
        PairsRule(
            re.compile(
                rf"\b[Pp]ass[ :]\s?(?P<epoch>{INDEX}),?\s{{1,3}}batch[ :]\s?(?P<iteration>{INDEX})(?=[,\s])"
            ),
            Phase.TRAIN,
            "ass",
        ),
        PairsRule(_WHERE, Phase.TRAIN, "loss", anywhere=True, needs=(_LOSS, _BESIDES)),
    ),
    evaluation=(
        PairsRule(re.compile(rf"\[EVAL\] Finished, Epoch=(?P<epoch>{INDEX}),"), Phase.EVAL, "[EVAL] Finished"),
        PairsRule(re.compile(r"\b[Ee]val(?:uation)? (?=loss:)"), Phase.EVAL, "val"),
    ),
)

# Lines with a speed only are tried last, and only by `auto`.
SPEED = LineFormat(
    "speed",
    training=tuple(
        PairsRule(_SPEED_ALONE, Phase.TRAIN, needle, anywhere=True, needs=(_SPEED,))
        for needle in ("ips", "throughput", "speed", "qps")
    ),
)
