"""Line format of PaddleClas.

    [2022/05/01 10:00:00] ppcls INFO: [Train][Epoch 1/2][Iter: 0/12]lr(CosineAnnealingDecay): 0.10000000, top1:
    0.00000, top5: 0.12500, CELoss: 7.05123, loss: 7.05123, batch_cost: 1.23456s, reader_cost: 0.12345, ips:
    6.48012 samples/s, eta: 0:00:29, max_mem_reserved: 1234.00 MB, max_mem_allocated: 1100.50 MB
    [2022/05/01 10:00:09] ppcls INFO: [Train][Epoch 1/2][Avg]top1: 0.01, top5: 0.07, CELoss: 6.9, loss: 6.9
    [2022/05/01 10:00:12] ppcls INFO: [Eval][Epoch 1][Iter: 0/25]CELoss: 6.4, loss: 6.4, top1: 0.0, batch_cost:
    0.2s, reader_cost: 0.1, ips: 320.1 images/sec
    [2022/05/01 10:00:19] ppcls INFO: [Eval][Epoch 1][Avg]CELoss: 6.4, loss: 6.4, top1: 0.01961, top5: 0.07941
    [2022/05/01 10:00:19] ppcls INFO: [Eval][Epoch 1][best metric: 0.0196]
    [2022/05/01 10:00:19] ppcls INFO: [Eval][Epoch 1][Avg]recall1: 0.81, recall5: 0.93, mAP: 0.61
    evalres: ma: 0.512, label_f1: 0.3, label_pos_recall: 0.4

(each on one line in the log). Epochs count from 1, iterations from 0 within the epoch.
"""

import re

from tipcflow.domain import Phase
from tipcflow.domain.numbers.metrics import Scope
from tipcflow.parse.rules.groups_and_pairs import GroupsRule, PairsRule
from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.rules.pairs import NUMBER
from tipcflow.parse.rules.reading import INDEX

_EPOCH = rf"\[Epoch (?P<epoch>{INDEX})(?:/\d+)?\]"
_ITER = rf"\[Iter: (?P<iteration>{INDEX})/\d+\]"
_AVG = r"\[Avg\]"

FORMAT = LineFormat(
    "clas",
    training=(
        PairsRule(re.compile(rf"\[Train\]{_EPOCH}{_ITER}"), Phase.TRAIN, "[Train]"),
        PairsRule(re.compile(rf"\[Train\]{_EPOCH}{_AVG}"), Phase.TRAIN, "[Train]", prefix=Scope.EPOCH.prefix),
    ),
    evaluation=(
        PairsRule(re.compile(rf"\[Eval\]{_EPOCH}{_AVG}"), Phase.EVAL, "[Eval]"),
        PairsRule(re.compile(rf"\[Eval\]{_EPOCH}{_ITER}"), Phase.EVAL, "[Eval]", prefix=Scope.BATCH.prefix),
        GroupsRule(
            re.compile(rf"\[Eval\]{_EPOCH}\[best metric: (?P<value>{NUMBER})\]"),
            Phase.EVAL,
            "best metric",
            name=lambda _: f"{Scope.BEST.prefix}metric",
        ),
        PairsRule(re.compile(r"\bevalres: "), Phase.EVAL, "evalres: "),
    ),
)
