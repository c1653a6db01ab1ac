"""Which of a cluster's nodes a run gets that needs only some of them: those that fewest others want."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain import Cluster, Node
from tipcflow.execute.node.file_lock import locked

if TYPE_CHECKING:
    from tipcflow.store import Store

# Reading what others want and saying what this run wants takes milliseconds.
_PLACING_S = 60.0


@contextlib.contextmanager
def placing(home: Path) -> Iterator[None]:
    """Only one run at a time chooses its nodes: two that look at once would choose the same.

    Raises:
        InfraError: somebody else has chosen for a minute.
    """
    with locked(home / "placing.lock", seconds=_PLACING_S):
        yield


def load_of(store: "Store", cluster: str, run: str) -> Mapping[str, int]:
    """Node name -> how many other runs that have not ended were given it."""
    others = [one for one in store.unfinished_runs() if one.cluster == cluster and one.id != run]
    return Counter(node for one in others for node in one.nodes)


def placed(cluster: Cluster, wanted: int, load: Mapping[str, int]) -> Cluster:
    """The cluster with the nodes that fewest want first, as it is when a run needs all of them.

    Nodes change places only with nodes of their kind (device, slots, container), so that what a plan finds at a
    position stays of that kind; equally wanted ones keep their order.
    """
    if wanted >= len(cluster.nodes):
        return cluster
    kinds: dict[tuple[object, ...], list[Node]] = {}
    for node in cluster.nodes:
        kinds.setdefault(_kind(node), []).append(node)
    queues = {kind: iter(sorted(nodes, key=lambda one: load.get(one.name, 0))) for kind, nodes in kinds.items()}
    return cluster.model_copy(update={"nodes": tuple(next(queues[_kind(node)]) for node in cluster.nodes)})


def turned(cluster: Cluster) -> Cluster:
    """The cluster with its nodes in another order: of each kind the first one becomes the last."""
    kinds: dict[tuple[object, ...], list[Node]] = {}
    for node in cluster.nodes:
        kinds.setdefault(_kind(node), []).append(node)
    queues = {kind: iter([*nodes[1:], nodes[0]]) for kind, nodes in kinds.items()}
    return cluster.model_copy(update={"nodes": tuple(next(queues[_kind(node)]) for node in cluster.nodes)})


def _kind(node: Node) -> tuple[object, ...]:
    return node.device, node.slots, node.container.model_dump_json() if node.container else ""
