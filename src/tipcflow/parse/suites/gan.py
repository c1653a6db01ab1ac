"""Line format of PaddleGAN.

    [05/01 10:00:00] ppgan.engine.trainer INFO: Iter: 5/10 lr: 1.000e-04 loss_pixel: 0.123 batch_cost: 1.00000 sec
    reader_cost: 0.10000 sec ips: 1.00000 images/s eta: 0:00:05 max_mem_reserved: 900 MB max_mem_allocated: 800 MB
    [05/01 10:00:00] ppgan.engine.trainer INFO: Epoch: 1/5, iter: 3/100 lr: 2.000e-04 D_A_loss: 0.3 G_loss: 4.1
    [05/01 10:00:00] ppgan.engine.trainer INFO: Epoch: 1/5 Iter: 3/100 lr: 2.000e-04 D_A_loss: 0.3 G_loss: 4.1
    [05/01 10:00:09] ppgan.engine.trainer INFO: Metric psnr: 27.0864

(each training line is one line in the log).
"""

import re

from tipcflow.domain import Phase
from tipcflow.parse.rules.groups_and_pairs import GroupsRule, PairsRule
from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.rules.pairs import NUMBER
from tipcflow.parse.rules.reading import INDEX

FORMAT = LineFormat(
    "gan",
    training=(
        PairsRule(
            re.compile(
                rf"(?:\bEpoch: (?P<epoch>{INDEX})/\d+,? [Ii]|\bI)ter: (?P<iteration>{INDEX})/\d+ (?=[A-Za-z_])"
            ),
            Phase.TRAIN,
            "ter: ",
        ),
    ),
    evaluation=(
        GroupsRule(
            re.compile(rf"\bMetric (?P<which>[A-Za-z]\w*): (?P<value>{NUMBER})(?!,?[\w:/-])"),
            Phase.EVAL,
            "Metric ",
            name=lambda match: match["which"],
        ),
    ),
)
