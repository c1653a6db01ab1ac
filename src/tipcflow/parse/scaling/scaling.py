"""Throughput by topology: speed-up of a training on more devices.

The rules are those of DLPerf (seed of PLSC's arcface): several repeats per topology, one value each; average
and median over the repeats; the speed-up is the median divided by the median of one device on one node.
Throughput and speed-up are rounded to two decimals, as DLPerf prints them.
"""

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable

from tipcflow.domain import Frozen
from tipcflow.domain.run.names import DeviceWord

# `4n8g` is 4 nodes with 8 GPUs each; TIPC's benchmarks have a `DeviceWord` instead.
_NODES_GPUS = re.compile(r"(?<![A-Za-z0-9])(\d{1,9})n(\d{1,9})g(?![A-Za-z0-9])")
# <model>_b<batch size>_<precision>_<repeat>.log
_NAME = re.compile(
    r"(?P<model>[^/]+?)_(?:b|bs|bz)(?P<batch>\d{1,9})_(?P<precision>[a-z0-9]+)(?:_(?P<repeat>\d{1,9}))?\."
)
_REPEAT = re.compile(r"_(?P<repeat>\d{1,9})\.[a-z]+(?:\.gz)?$")
ONE_DEVICE = (1, 1)
PLACES = 2


class Topology(Frozen):
    """Number of nodes, and of devices per node."""

    nodes: int
    gpus: int

    @property
    def name(self) -> str:
        """Return the name in DLPerf's form: 4n8g."""
        return f"{self.nodes}n{self.gpus}g"

    @property
    def devices(self) -> int:
        """Return the number of devices on all nodes."""
        return self.nodes * self.gpus


class Speed(Frozen):
    """One repeat of one training: samples per second of all devices together.

    Attributes:
        repeat: its number; a repeated number of the same topology is the same repeat.
        batch: the batch size per device in its name, 0 if the name states none.
        how: origin of the value: `printed`, `batch_cost`, `timestamps`.
        iterations: number of iterations of a training log that it covers, 0 if unknown.
    """

    model: str
    precision: str = ""
    topology: Topology
    repeat: int
    speed: float
    batch: int = 0
    source: str = ""
    how: str = "printed"
    iterations: int = 0


class Scaled(Frozen):
    """One topology of one model. `speedup` and `efficiency` are None without a run on one device.

    Attributes:
        efficiency: the unrounded speed-up divided by the number of devices, relative to the devices of the base
            (1.0 is perfect); four decimals.
        speeds: repeat -> throughput.
    """

    model: str
    topology: str
    devices: int
    batch_size_per_device: int
    average_speed: float
    median_speed: float
    speedup: float | None
    efficiency: float | None
    repeats: int
    speeds: dict[int, float]


def topology_in(text: str) -> Topology | None:
    """Return the last topology in a path or a name; None if it contains none."""
    topologies = _NODES_GPUS.findall(text)
    if topologies:
        nodes, gpus = map(int, topologies[-1])
    else:
        word = DeviceWord.find(text)
        if word is None or word.devices % word.nodes:
            return None
        nodes, gpus = word.nodes, word.per_node
    return Topology(nodes=nodes, gpus=gpus) if nodes and gpus else None


def named(path: str) -> tuple[str, str, int, int]:
    """Return (model, precision, batch size per device, repeat) from a log's path; '' and 0 if not part of it."""
    name = path.rsplit("/", 1)[-1]
    match = _NAME.match(name)
    if match:
        return match["model"], match["precision"], int(match["batch"]), int(match["repeat"] or 0)
    repeat = _REPEAT.search(name)
    return "", "", 0, int(repeat["repeat"]) if repeat else 0


def scaled(speeds: Iterable[Speed], batch_size_per_device: int, *, from_smallest: bool = False) -> list[Scaled]:
    """Return the table, sorted by model and number of devices.

    Args:
        from_smallest: without a 1n1g, the speed-up is relative to the topology with fewest devices.
    """
    models: defaultdict[str, dict[Topology, dict[int, float]]] = defaultdict(dict)
    all_speeds = list(speeds)
    mixed = {speed.model for speed in all_speeds} - {
        model for model, count in _precisions(all_speeds).items() if count == 1
    }
    for speed in all_speeds:
        model = f"{speed.model}_{speed.precision}" if speed.model in mixed and speed.precision else speed.model
        models[model].setdefault(speed.topology, {})[speed.repeat] = round(speed.speed, PLACES)
    table = []
    for model, topologies in sorted(models.items()):
        alone = topologies.get(Topology(nodes=1, gpus=1))
        base = statistics.median(alone.values()) if alone else None
        ordered = sorted(topologies.items(), key=lambda item: (item[0].devices, item[0].nodes))
        devices = 1
        if base is None and from_smallest:
            devices, base = ordered[0][0].devices, statistics.median(ordered[0][1].values())
        for topology, repeats in ordered:
            table.append(_row(model, topology, repeats, base, devices, batch_size_per_device))
    return table


def _precisions(speeds: list[Speed]) -> dict[str, int]:
    by_model: defaultdict[str, set[str]] = defaultdict(set)
    for speed in speeds:
        by_model[speed.model].add(speed.precision)
    return {model: len(precisions) for model, precisions in by_model.items()}


def _row(
    model: str, topology: Topology, repeats: dict[int, float], base: float | None, devices: int, batch: int
) -> Scaled:
    """Return a row; `base` is the median on `devices` devices."""
    median = statistics.median(repeats.values())
    speedup = median / base if base else None
    return Scaled(
        model=model,
        topology=topology.name,
        devices=topology.devices,
        batch_size_per_device=batch,
        average_speed=round(statistics.fmean(repeats.values()), PLACES),
        median_speed=round(median, PLACES),
        speedup=None if speedup is None else round(speedup, PLACES),
        efficiency=None if speedup is None else round(speedup * devices / topology.devices, 4),
        repeats=len(repeats),
        speeds=dict(sorted(repeats.items())),
    )
