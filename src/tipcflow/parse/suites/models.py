"""Line format of the `models` repository (plain prints without time stamps and colors).

    [Epoch 1, iter: 4780] top1: 0.10312, top5: 0.27344, lr: 0.01000, loss: 5.34719, avg_reader_cost: 0.03644 sec,
    avg_batch_cost: 0.05536 sec, avg_samples: 64.0, avg_ips: 1156.08863 images/sec.
     * Acc@1 0.833 Acc@5 4.167

(each training line is one line in the log and ends with a full stop). Evaluation values are percentages.
"""

import re

from tipcflow.domain import Phase
from tipcflow.parse.rules.groups_and_pairs import PairsRule
from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.rules.names_and_numbers import WordsRule
from tipcflow.parse.rules.pairs import NUMBER
from tipcflow.parse.rules.reading import INDEX

FORMAT = LineFormat(
    "models",
    training=(
        PairsRule(
            re.compile(rf"\[Epoch (?P<epoch>{INDEX}), iter: (?P<iteration>{INDEX})\]\s*+(?=[A-Za-z_])"),
            Phase.TRAIN,
            "[Epoch ",
        ),
    ),
    evaluation=(
        WordsRule(
            re.compile(r"^\s*\* (?=Acc@\d)"),
            re.compile(rf"(?P<name>Acc@\d+) (?P<number>{NUMBER})(?=\s|$)"),
            Phase.EVAL,
            "* Acc@",
            unit="%",
        ),
    ),
)
