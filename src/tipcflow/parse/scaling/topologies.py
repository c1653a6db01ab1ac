"""Topologies of a scaling chain: their names, their order, and which of them a cluster has."""

import re
from collections.abc import Iterable

from tipcflow.domain import Cluster, ConfigError
from tipcflow.domain.numbers.units import counted
from tipcflow.parse.scaling.scaling import Topology

# Those of DLPerf (1, 4 and 8 devices, 2 and 4 nodes), and those of two nodes with two processes each.
DEFAULT = ("1n1g", "1n2g", "1n4g", "1n8g", "2n1g", "2n2g", "2n8g", "4n8g")
_NAME = re.compile(r"([1-9]\d{0,3})n([1-9]\d{0,3})g")


def read_topology(name: str) -> Topology:
    """Return the topology of a name such as 2n8g.

    Raises:
        ConfigError: another form.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ConfigError(
            "unknown topology",
            key="--topology",
            found=name,
            expected="nodes and devices per node, for example 2n8g",
        )
    return Topology(nodes=int(match[1]), gpus=int(match[2]))


def in_order(topologies: Iterable[Topology]) -> list[Topology]:
    """Return each topology once, the fewest nodes first: they are free sooner than the whole cluster."""
    return sorted(set(topologies), key=lambda topology: (topology.nodes, topology.gpus))


def misfit(topology: Topology, cluster: Cluster) -> str:
    """Return why the cluster does not have a topology; '' if it has."""
    if topology.nodes > len(cluster.nodes):
        return f"{counted(topology.nodes, 'node')} needed, cluster {cluster.name} has {len(cluster.nodes)}"
    for node in cluster.nodes[: topology.nodes]:
        if node.slots < topology.gpus:
            return f"{counted(topology.gpus, 'device')} per node needed, node {node.name} has {node.slots}"
    return ""


def batch_per_device(topology: Topology, *, per_device: int, in_total: int) -> int:
    """Return the batch size per device.

    Args:
        per_device, in_total: one of them is given, the other is 0.

    Raises:
        ConfigError: the number of devices does not divide the total.
    """
    if per_device:
        return per_device
    if in_total % topology.devices:
        raise ConfigError(
            f"{topology.devices} devices of {topology.name} do not divide the batch",
            key="--global-batch-size",
            found=str(in_total),
            expected=f"a multiple of {topology.devices}",
        )
    return in_total // topology.devices
