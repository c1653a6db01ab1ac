"""Line format of PaddleVideo; color codes are removed before parsing.

    [05/01 10:00:00] epoch:[  1/1  ] train step:100  loss: 5.31382 lr: 0.000250 top1: 0.00000 top5: 0.00000
    batch_cost: 0.73082 sec, reader_cost: 0.38075 sec, ips: 5.47330 instance/sec, eta: 0:01:02,
    max_mem_reserved: 900 MB max_mem_allocated: 800 MB
    [05/01 10:00:09] epoch:[  1/1  ] val step:0  loss: 5.2 top1: 0.0 top5: 0.1 batch_cost: 0.7 sec, reader_cost:
    0.3 sec, ips: 5.4 instance/sec.
    [05/01 10:00:09] END epoch:1  val loss_avg: 5.2 top1_avg: 0.022 top5_avg: 0.1 avg_batch_cost: 0.7 sec,
    avg_reader_cost: 0.3 sec, batch_cost_sum: 7.1 sec, avg_ips: 8.4 instance/sec.
    [05/01 10:00:09] avg_acc1= 0.4, avg_acc5= 0.8

(each on one line in the log; older versions print `elapse: 0.326 reader: 0.001s`). Epochs count from 1.
"""

import re

from tipcflow.domain import Phase
from tipcflow.domain.numbers.metrics import Scope
from tipcflow.parse.rules.groups_and_pairs import PairsRule
from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.rules.reading import INDEX

_EPOCH = rf"epoch:\[\s*(?P<epoch>{INDEX})/\d+\s*\]\s*"
_STEP = rf" step:\s*(?P<iteration>{INDEX})"

FORMAT = LineFormat(
    "video",
    training=(
        PairsRule(re.compile(rf"{_EPOCH}train{_STEP}"), Phase.TRAIN, "epoch:["),
        PairsRule(
            re.compile(rf"END epoch:(?P<epoch>{INDEX})\s+train "),
            Phase.TRAIN,
            "END epoch:",
            prefix=Scope.EPOCH.prefix,
        ),
    ),
    evaluation=(
        PairsRule(re.compile(rf"{_EPOCH}val{_STEP}"), Phase.EVAL, "epoch:[", prefix=Scope.BATCH.prefix),
        PairsRule(re.compile(rf"END epoch:(?P<epoch>{INDEX})\s+val "), Phase.EVAL, "END epoch:"),
        PairsRule(re.compile(r"(?<!\w)(?=avg_acc\d+=)"), Phase.EVAL, "avg_acc", anywhere=True),
    ),
)
