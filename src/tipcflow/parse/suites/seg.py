"""Line format of PaddleSeg, including its matting lines and its older `key=value` lines.

    [2024/01/02 03:04:05] INFO: [TRAIN] epoch: 1, iter: 10/20, loss: 1.2345, lr: 0.009000, batch_cost: 0.2345,
    reader_cost: 0.01234, ips: 8.5288 samples/sec, max_mem_reserved: 5120 MB, max_mem_allocated: 4000 MB | ETA
    00:00:02
    2022-05-01 10:00:00 [INFO]	[TRAIN] epoch=1, iter=10/20, loss=1.2345, lr=0.009, batch_cost=0.2 | ETA 00:00:02
    2022-05-01 10:00:09 [INFO]	[EVAL] #Images: 76 mIoU: 0.9232 Acc: 0.9970 Kappa: 0.9171 Dice: 0.9585 Auc_roc: 0.9
    [EVAL] #Images=76 mIoU=0.8526 Acc=0.9942
    [EVAL] SAD: 112.73, MSE: 0.0098
    2022-05-01 10:00:09 [INFO]	[EVAL] The model with the best validation mIoU (0.9232) was saved at iter 20.

(each training line is one line in the log). Iterations count over the whole run. Per-class arrays are
ignored.
"""

import re

from tipcflow.domain import Phase
from tipcflow.domain.numbers.metrics import Scope
from tipcflow.parse.rules.groups_and_pairs import GroupsRule, PairsRule
from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.rules.pairs import NUMBER
from tipcflow.parse.rules.reading import INDEX

FORMAT = LineFormat(
    "seg",
    training=(
        PairsRule(
            re.compile(
                rf"\[TRAIN\]\s+epoch\s?[:=]\s?(?P<epoch>{INDEX}),?\s+iter\s?[:=]\s?(?P<iteration>{INDEX})/\d+"
            ),
            Phase.TRAIN,
            "[TRAIN]",
        ),
    ),
    evaluation=(
        PairsRule(re.compile(r"\[EVAL\]\s+(?:#Images\s?[:=]\s?\d+|(?=SAD:))"), Phase.EVAL, "[EVAL]"),
        GroupsRule(
            re.compile(
                rf"\[EVAL\] The model with the best validation (?P<which>\w+) \((?P<value>{NUMBER})\)"
                rf" was saved at iter (?P<iteration>{INDEX})"
            ),
            Phase.EVAL,
            "best validation",
            name=lambda match: f"{Scope.BEST.prefix}{match['which']}",
        ),
    ),
)
