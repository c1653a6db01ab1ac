"""Reads the throughput of whole trainings from a text: lines of DLPerf, objects of TIPC's benchmarks.

    logs/paddle-plsc/arcface/bz128/4n8g/r50_b128_fp32_4.log {1: 11165.17, 4: 11077.58}
    {"model_name": "ResNet50_bs256_fp32_MultiP_DP", "ips": 2564.1, "device_num": "N4C32", "speed_unit": "images/s"}

Repeat numbers may be quoted; objects may span several lines.
"""

import json
import re
from collections.abc import Iterator

from tipcflow.parse.reports.objects import ObjectReader
from tipcflow.parse.rules.pairs import NUMBER
from tipcflow.parse.scaling.scaling import Speed, named, topology_in

_PAIR = rf"['\"]?\d{{1,9}}['\"]?\s?:\s?{NUMBER}"
_RESULT = re.compile(rf"^\s*(?P<path>\S+)\s+\{{\s?(?P<speeds>(?:{_PAIR}(?:,\s?)?)+)\s?\}}\s*$")
_REPEAT = re.compile(rf"(\d{{1,9}})['\"]?\s?:\s?({NUMBER})")
_LIKE_A_RESULT = re.compile(r"^\s*(?P<path>\S+)\s+\{.*\}\s*$")


class PrintedSpeeds:
    """Reads a text line by line.

    Attributes:
        speeds: the values found; repeat is 0 if the text does not number it.
        unparsed: lines that resemble results of a topology but cannot be parsed.
    """

    def __init__(self) -> None:
        self.speeds: list[Speed] = []
        self.unparsed: list[str] = []
        self._objects = ObjectReader()

    def line(self, offset: int, line: str) -> None:
        """Process the next line, without colors."""
        whole = self._objects.line(offset, line)
        speeds = list(_result(line)) or _benchmark(whole or line)
        self.speeds += speeds
        if not speeds:
            like = _LIKE_A_RESULT.match(line)
            if like and topology_in(like["path"]):
                self.unparsed.append(line.strip())


def _result(line: str) -> Iterator[Speed]:
    match = _RESULT.match(line)
    topology = topology_in(match["path"]) if match else None
    if match and topology:
        model, precision, batch, _ = named(match["path"])
        for repeat, speed in _REPEAT.findall(match["speeds"]):
            yield Speed(
                model=model, precision=precision, topology=topology, repeat=int(repeat), speed=float(speed),
                batch=batch, source=match["path"],
            )  # fmt: skip


def _benchmark(line: str) -> list[Speed]:
    if not line.lstrip().startswith("{") or '"ips"' not in line:
        return []
    try:
        record = json.loads(line)
        device = str(record["device_num"])
        topology = topology_in(device)
        model = re.sub(r"_bs\d+_.*", "", str(record["model_name"]))
        if not topology:
            return []
        return [
            Speed(model=model, precision=str(record.get("fp_item", "")), topology=topology, repeat=0,
                  speed=float(record["ips"]), batch=int(record.get("batch_size", 0)), source=f"{model} {device}")
        ]  # fmt: skip
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return []
