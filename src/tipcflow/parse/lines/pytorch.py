"""Distributed PyTorch examples.

    Epoch: 1/20, train loss: 0.452341, train acc: 87.00%, test loss: 0.193412, test acc: 94.10%.
    Train Epoch: 1 [0/60000 (0%)]	Loss: 2.300039
    Test set: Average loss: 0.2015, Accuracy: 9403/10000 (94%)
    Epoch: [0][  10/5005]	Time  0.5 ( 0.6)	Data  0.0 ( 0.0)	Loss 6.9e+00 (7.0e+00)	Acc@1   0.00 (  0.12)
    Epoch 1 time: 12.3s

The first number of `6.9 (7.0)` is the iteration's, the second a mean that is not read. The iteration of
`Train Epoch` counts images.
"""

import re

from tipcflow.domain import Phase
from tipcflow.parse.line_format import LineFormat
from tipcflow.parse.pairs import NUMBER
from tipcflow.parse.reading import INDEX
from tipcflow.parse.rules import GroupsRule
from tipcflow.parse.words import WordsRule

_EPOCH = rf"\bEpoch: (?P<epoch>{INDEX})/\d+,"

FORMAT = LineFormat(
    "pytorch",
    training=(
        GroupsRule(
            re.compile(rf"{_EPOCH} train loss: (?P<loss>{NUMBER})(?:, train acc: (?P<acc>{NUMBER})%)?"),
            Phase.TRAIN,
            "train loss: ",
            {"acc": "%"},
        ),
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
        GroupsRule(
            re.compile(rf"{_EPOCH} .*?test loss: (?P<loss>{NUMBER})(?:, test acc: (?P<acc>{NUMBER})%)?"),
            Phase.EVAL,
            "test loss: ",
            {"acc": "%"},
        ),
        GroupsRule(
            re.compile(rf"\bTest set: Average loss: (?P<loss>{NUMBER}), Accuracy: \d+/\d+ \((?P<acc>{NUMBER})%\)"),
            Phase.EVAL,
            "Test set: ",
            {"acc": "%"},
        ),
    ),
)
