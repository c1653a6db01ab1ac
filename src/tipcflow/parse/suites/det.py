"""Line format of PaddleDetection.

    [05/01 10:00:00] ppdet.engine INFO: Epoch: [0] [ 0/50] learning_rate: 0.000333 loss_xy: 6.5 loss: 67.123456
    eta: 0:01:40 batch_cost: 2.0123 data_cost: 0.0005 ips: 3.9756 images/s, max_mem_reserved: 8000 MB,
    max_mem_allocated: 7000 MB
     Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.123
    [05/01 10:00:09] ppdet.metrics.metrics INFO: mAP(0.50, 11point) = 12.34%
    [05/01 10:00:09] ppdet.engine INFO: Total sample number: 50, average FPS: 3.2
    [05/01 10:00:09] ppdet.engine INFO: Best test bbox ap is 0.123.

(each training line is one line in the log). Epochs count from 0. Losses are medians of a window. COCO's
table becomes AP, AP50, AP75, APs, APm, APl, AR1, AR10, AR100, ARs, ARm, ARl; -1.000 (not applicable) is not
a value.
"""

import re

from tipcflow.domain import Phase
from tipcflow.domain.numbers.metrics import Scope
from tipcflow.parse.rules.groups_and_pairs import GroupsRule, PairsRule
from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.rules.pairs import NUMBER
from tipcflow.parse.rules.reading import INDEX

_SIZES = {"small": "s", "medium": "m", "large": "l"}


def _coco(match: re.Match[str]) -> str:
    """Return the usual short name of a line of the COCO table."""
    kind, iou, area, most = match["kind"], match["iou"], match["area"], match["most"]
    if area in _SIZES:
        return f"{kind}{_SIZES[area]}"
    if kind == "AR":
        return f"AR{most}"
    return "AP" if ":" in iou else f"AP{iou.removeprefix('0.')}"


FORMAT = LineFormat(
    "det",
    training=(
        PairsRule(
            re.compile(rf"\bEpoch: \[(?P<epoch>{INDEX})\] \[\s*(?P<iteration>{INDEX})/\d+\]"),
            Phase.TRAIN,
            "Epoch: [",
        ),
    ),
    evaluation=(
        GroupsRule(
            re.compile(
                r"Average (?:Precision|Recall)\s+\((?P<kind>AP|AR)\) @\[ IoU=(?P<iou>[\d.:]+)\s{0,6}\| "
                r"area=\s{0,6}(?P<area>[a-z]+) \| maxDets=\s{0,6}(?P<most>\d+) \] = "
                rf"(?:-\d+\.\d+|(?P<value>{NUMBER}))"
            ),
            Phase.EVAL,
            "maxDets=",
            name=_coco,
            empty=True,
        ),
        GroupsRule(re.compile(rf"\bmAP\([\d.]+, \w+\) = (?P<mAP>{NUMBER})%"), Phase.EVAL, "mAP(", {"mAP": "%"}),
        GroupsRule(
            re.compile(rf"Total sample number: \d+, aver\w*ge FPS: (?P<fps>{NUMBER})"), Phase.EVAL, "FPS: "
        ),
        GroupsRule(
            re.compile(r"Best test (?P<which>\w+) ap is (?P<value>\d+\.\d+)"),
            Phase.EVAL,
            "Best test ",
            name=lambda match: f"{Scope.BEST.prefix}{match['which']}_ap",
        ),
    ),
)
