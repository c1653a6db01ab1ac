"""Line format of PaddleRec.

    2022-05-01 10:00:00,123 - INFO - epoch: 0, batch_id: 0, auc:0.500000, loss:0.69, avg_reader_cost: 0.00012 sec,
    avg_batch_cost: 0.01234 sec, avg_samples: 10.00000, ips: 810.12345 ins/s
    2022-05-01 10:00:09,123 - INFO - epoch: 0 done, auc: 0.512345,loss:0.61, epoch time: 3.21 s

(each training line is one line in the log). Epochs count from 0. Evaluation prints the same line as the end
of an epoch; both are read as evaluation. Tensors print as `auc:[0.5]`; of several numbers, the first is
read.
"""

import re

from tipcflow.domain import Phase
from tipcflow.parse.rules.groups_and_pairs import PairsRule
from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.rules.reading import INDEX

FORMAT = LineFormat(
    "rec",
    training=(
        PairsRule(
            re.compile(rf"\bepoch: (?P<epoch>{INDEX}), batch_id: (?P<iteration>{INDEX}),"),
            Phase.TRAIN,
            "batch_id: ",
        ),
    ),
    evaluation=(
        PairsRule(
            re.compile(rf"\bepoch: (?P<epoch>{INDEX}) done, "),
            Phase.EVAL,
            " done, ",
            names={"time": "epoch_time"},  # `epoch time: 3.21 s`
        ),
    ),
)
