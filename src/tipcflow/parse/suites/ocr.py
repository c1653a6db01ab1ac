"""Line format of PaddleOCR since 2021.

    [2022/08/08 16:28:28] ppocr INFO: epoch: [1/200], global_step: 10, lr: 0.000006, acc: 0.109375, norm_edit_dis:
    0.387492, CTCLoss: 4.1, loss: 1.871535, avg_reader_cost: 0.28200 s, avg_batch_cost: 0.82318 s, avg_samples:
    8.0, ips: 9.71838 samples/s, eta: 9 days, 2:29:27, max_mem_reserved: 5140 MB, max_mem_allocated: 4339 MB
    [2021/08/08 16:28:28] root INFO: epoch: [1/200], iter: 10, 'lr': 0.001, 'loss': 4.1, reader_cost: 0.1 s,
    batch_cost: 0.8 s, samples: 512, ips: 224.79344
    [2022/08/08 16:29:00] ppocr INFO: cur metric, precision: 0.69, recall: 0.88, hmean: 0.78, fps: 17.36
    [2022/08/08 16:29:00] ppocr INFO: best metric, hmean: 0.78, is_float16: False, fps: 17.36, best_epoch: 3
    [2022/08/08 16:29:00] ppocr INFO: metric eval ***************
    [2022/08/08 16:29:00] ppocr INFO: hmean:0.8670120239257812

(each training line is one line in the log). Values listed after `metric in ckpt ***` are from an earlier run
and are ignored. avg_* of the last group of an epoch are too small, because the suite divides by the full
group length; ips is correct.
"""

import re

from tipcflow.domain import Phase
from tipcflow.domain.numbers.metrics import Scope
from tipcflow.parse.rules.groups_and_pairs import GroupsRule, PairsRule
from tipcflow.parse.rules.line_format import LineFormat, MutedSection
from tipcflow.parse.rules.pairs import NUMBER
from tipcflow.parse.rules.reading import INDEX

FORMAT = LineFormat(
    "ocr",
    training=(
        PairsRule(
            re.compile(
                rf"\bepoch: \[(?P<epoch>{INDEX})/\d+\], (?:global_step|iter): (?P<iteration>{INDEX})(?:, |$)"
            ),
            Phase.TRAIN,
            "epoch: [",
            units={"ips": "samples/s"},  # lines of 2021 print the value without a unit
        ),
    ),
    evaluation=(
        PairsRule(re.compile(r"\bcur metric, "), Phase.EVAL, "cur metric, "),
        PairsRule(re.compile(r"\bbest metric, "), Phase.EVAL, "best metric, ", prefix=Scope.BEST.prefix),
        GroupsRule(
            re.compile(rf"\bINFO: (?P<which>[A-Za-z_]\w*):(?P<value>{NUMBER})\s*$"),
            Phase.EVAL,
            " INFO: ",
            name=lambda match: match["which"],
            listed=True,
        ),
    ),
    mutes=MutedSection(begin="metric in ckpt ***", end="metric eval ***"),
)
