"""Line format of distributed PyTorch examples and tutorials.

    Epoch: 1/20, train loss: 0.452341, train acc: 87.00%, test loss: 0.193412, test acc: 94.10%.
    Epoch 2: train loss 0.5, test acc 0.9
    Epoch 1 | loss 0.5 | acc 0.9 | time 12.3s
    Epoch [1/20], Step [100/600], Loss: 0.1234
    Rank 0, Epoch 1, Loss 0.5, Acc 0.7
    Test Accuracy: 98.5%
    Train Epoch: 1 [0/60000 (0%)]	Loss: 2.300039
    Test set: Average loss: 0.2015, Accuracy: 9403/10000 (94%)
    Epoch: [0][  10/5005]	Time  0.5 ( 0.6)	Data  0.0 ( 0.0)	Loss 6.9e+00 (7.0e+00)	Acc@1   0.00 (  0.12)
    Epoch 1 time: 12.3s

In `6.9 (7.0)`, the first number is the iteration's value; the second is a mean and is ignored. The iteration
of `Train Epoch` counts images. A value without `train` or `test` before it belongs to training.
"""

import re

from tipcflow.domain import Phase
from tipcflow.parse.rules.groups_and_pairs import GroupsRule
from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.rules.names_and_numbers import WordsRule
from tipcflow.parse.rules.pairs import NUMBER
from tipcflow.parse.rules.phrases import PhrasesRule
from tipcflow.parse.rules.reading import INDEX

_TO = r"(?:/\d+)?\]?\s?(?:[,:|]|-(?=\s))\s?"
_EPOCH = re.compile(
    rf"(?:\bRank[ :]{{1,2}}(?P<rank>{INDEX}),?\s)?\bEpoch:?\s?\[?(?P<epoch>{INDEX}){_TO}"
    rf"(?:(?:Step|Iter|Iteration|Batch):?\s?\[?(?P<iteration>{INDEX}){_TO})?"
)
_TEST = re.compile(r"(?<![\w-])(?=(?:Test|Val|Validation) (?:[Ll]oss|[Aa]cc|[Aa]ccuracy)\b)")

FORMAT = LineFormat(
    "pytorch",
    training=(
        PhrasesRule(_EPOCH, Phase.TRAIN, "Epoch"),
        GroupsRule(
            re.compile(
                rf"\bTrain Epoch: (?P<epoch>{INDEX}) \[\s*(?P<iteration>{INDEX})/\d+ \(\s*\d+%\)\]"
                rf"\s+Loss: (?P<loss>{NUMBER})"
            ),
            Phase.TRAIN,
            "Train Epoch: ",
        ),
        WordsRule(
            re.compile(rf"\bEpoch: \[(?P<epoch>{INDEX})\]\[\s*(?P<iteration>{INDEX})/\d+\]"),
            re.compile(rf"(?P<name>[A-Z][\w@]*)\s{{1,4}}(?P<number>{NUMBER}) \(\s{{0,4}}{NUMBER}\)"),
            Phase.TRAIN,
            "Epoch: [",
        ),
        GroupsRule(
            re.compile(
                rf"(?i:\bepoch)[:\s]{{1,2}}(?P<epoch>{INDEX}),?\s(?:time|took|cost)[:=\s]{{1,2}}(?P<epoch_time>{NUMBER})\s?s"
            ),
            Phase.TRAIN,
            "poch",
        ),
    ),
    evaluation=(
        PhrasesRule(_EPOCH, Phase.EVAL, "Epoch"),
        PhrasesRule(_TEST, Phase.EVAL, " ", other=Phase.EVAL),
        GroupsRule(
            re.compile(rf"\bTest set: Average loss: (?P<loss>{NUMBER}), Accuracy: \d+/\d+ \((?P<acc>{NUMBER})%\)"),
            Phase.EVAL,
            "Test set: ",
            {"acc": "%"},
        ),
    ),
)
