"""Line format of throughput results per training, printed by DLPerf's extraction scripts and TIPC's
benchmark.

    logs/paddle-plsc/arcface/bz128/4n8g/r50_b128_fp32_4.log {1: 11165.17, 4: 11077.58}
    {"model_name": "ResNet50_bs256_fp32_MultiP_DP", "batch_size": 256, "ips": 2564.1, "speed_unit": "images/s"}

In a DLPerf line, the last number belongs to this log (earlier numbers were printed before). A benchmark's
object may span several lines (`tipcflow.parse.reports.objects`). Other objects have no unit, model or
devices.
"""

import re
from dataclasses import dataclass

from tipcflow.domain import Phase
from tipcflow.parse.metrics import unit_of
from tipcflow.parse.rules.groups_and_pairs import GroupsRule
from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.rules.pairs import NUMBER
from tipcflow.parse.rules.reading import INDEX, Field, Reading

TOPOLOGY = r"(?<![A-Za-z0-9])(?P<nodes>\d{1,9})n(?P<gpus>\d{1,9})g(?![A-Za-z0-9])"
_MEMBER = r'"{name}"\s*+:\s*+"?(?P<value>{number})"?\s*+(?:,\s*+"|\}})'
# Member of the object -> metric, and its unit if it differs from the unit of the throughput.
_MEASURED = {"ips": "throughput", "convergence_value": "convergence_value", "model_run_time": "model_run_time"}
_UNITS = {"convergence_value": "", "model_run_time": "s"}
_PATTERNS = {name: re.compile(_MEMBER.format(name=name, number=NUMBER)) for name in _MEASURED}
_UNIT = re.compile(r'"speed_unit"\s*+:\s*+"(?P<unit>[^"]*)"')
_OF_A_BENCHMARK = ('"speed_unit"', '"device_num"', '"model_name"')


@dataclass(frozen=True)
class SpeedRule:
    """The JSON object of a benchmark's speed file, on one line; a separate field holds the unit."""

    def read(self, line: str) -> list[Reading]:
        """Return the throughput; an empty list if the line is not such an object."""
        if '"ips"' not in line or not line.lstrip().startswith("{"):
            return []
        if not any(name in line for name in _OF_A_BENCHMARK) or not _PATTERNS["ips"].search(line):
            return []
        unit = _UNIT.search(line)
        printed, at = (unit["unit"], unit.span("unit")) if unit else ("", (0, 0))
        fields = []
        for member, metric in _MEASURED.items():
            match = _PATTERNS[member].search(line)
            if match:
                own = _UNITS.get(member, unit_of(metric, printed))
                fields.append(Field(metric, own, match.span("value"), at if member == "ips" else (0, 0)))
        return [Reading(Phase.TRAIN, tuple(fields))]


_REPEAT = r"['\"]?\d{1,9}['\"]?\s?:\s?"

FORMAT = LineFormat(
    "dlperf",
    training=(
        GroupsRule(
            re.compile(
                rf"{TOPOLOGY}[^\s{{]*+\s{{1,9}}\{{\s?(?:{_REPEAT}{NUMBER},\s?)*+"
                rf"['\"]?(?P<iteration>{INDEX})['\"]?\s?:\s?(?P<value>{NUMBER})\s?\}}"
            ),
            Phase.TRAIN,
            "{",
            {"value": "samples/s"},
            name=lambda match: f"throughput.{match['nodes']}n{match['gpus']}g",
        ),
        SpeedRule(),
    ),
)
