"""Speeds of whole trainings, as DLPerf's extraction scripts and TIPC's benchmark print them.

    logs/paddle-plsc/arcface/bz128/4n8g/r50_b128_fp32_4.log {1: 11165.17, 4: 11077.58}
    {"model_name": "ResNet50_bs256_fp32_MultiP_DP", "batch_size": 256, "ips": 2564.1, "speed_unit": "images/s"}

Of the first, the last number is the log's own (those before it were printed already).
"""

import re
from dataclasses import dataclass

from tipcflow.domain import Phase
from tipcflow.parse.line_format import LineFormat
from tipcflow.parse.metrics import unit_of
from tipcflow.parse.pairs import NUMBER
from tipcflow.parse.reading import INDEX, Field, Reading
from tipcflow.parse.rules import GroupsRule

TOPOLOGY = r"(?<![A-Za-z0-9])(?P<nodes>\d{1,9})n(?P<gpus>\d{1,9})g(?![A-Za-z0-9])"
_IPS = re.compile(rf'"ips"\s?:\s?(?P<ips>{NUMBER})\s?[,}}]')
_UNIT = re.compile(r'"speed_unit"\s?:\s?"(?P<unit>[^"]*)"')


@dataclass(frozen=True)
class SpeedRule:
    """The one-line JSON object of a benchmark's speed file; its unit stands in a field of its own."""

    def read(self, line: str) -> list[Reading]:
        """The speed; nothing when the line is no such object."""
        speed = _IPS.search(line) if '"ips"' in line else None
        if speed is None or not line.lstrip().startswith("{"):
            return []
        unit = _UNIT.search(line)
        at = unit.span("unit") if unit else (0, 0)
        name = unit_of("ips", unit["unit"] if unit else "")
        return [Reading(Phase.TRAIN, (Field("throughput", name, speed.span("ips"), at),))]


FORMAT = LineFormat(
    "dlperf",
    training=(
        GroupsRule(
            re.compile(
                rf"{TOPOLOGY}[^\s{{]*+ \{{(?:\d{{1,9}}: {NUMBER}, )*+"
                rf"(?P<iteration>{INDEX}): (?P<value>{NUMBER})\}}"
            ),
            Phase.TRAIN,
            ".log {",
            {"value": "samples/s"},
            name=lambda match: f"throughput.{match['nodes']}n{match['gpus']}g",
        ),
        SpeedRule(),
    ),
)
