"""Choose the nodes for a run that needs only part of a cluster: the least used ones."""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain import Cluster, Node
from tipcflow.domain.run_documents import ClusterDocument
from tipcflow.execute.drain.drains import drained_nodes
from tipcflow.execute.node.file_lock import locked

if TYPE_CHECKING:
    from tipcflow.store import Store

# Reading the load and storing the run's choice takes milliseconds.
_PLACING_S = 60.0
_KEPT_NODES = 16


@contextlib.contextmanager
def placement_lock(store: "Store", home: Path) -> Iterator[None]:
    """Only one run at a time chooses its nodes: two concurrent runs would choose the same, also on two machines.

    Raises:
        InfraError: another process has held the lock for a minute.
    """
    with locked(home / "placing.lock", seconds=_PLACING_S), store.locks.held("placing", seconds=_PLACING_S):
        yield


def load_of(store: "Store", cluster: Cluster, run: str) -> Mapping[str, int]:
    """Return node name -> number of other unfinished runs on it, also of clusters that name the same address."""
    names = {node.address: node.name for node in cluster.nodes}
    load: Counter[str] = Counter()
    for other in store.runs.unfinished():
        if other.id == run:
            continue
        if other.cluster == cluster.name:
            load.update(other.nodes)
        elif document := store.documents.get(other.id, ClusterDocument):
            hosts = {node.name: node.address for node in document.root.nodes}
            load.update(names[hosts[node]] for node in other.nodes if hosts.get(node) in names)
    return load


def doubtful_nodes(store: "Store", cluster: Cluster) -> frozenset[str]:
    """Return the nodes that are chosen last.

    They have expired leases (their run has ended, but the node could not be listed since), or are drained.
    """
    expired = store.leases.expired_nodes()
    silent = frozenset(node.name for node in cluster.nodes if node.address in expired)
    return silent | drained_nodes(store, cluster).keys()


def place_nodes(
    cluster: Cluster, wanted: int, load: Mapping[str, int], *, doubtful: Collection[str] = ()
) -> Cluster:
    """Return the cluster with the least used nodes first, unchanged if a run needs all of them.

    Args:
        doubtful: nodes that come after all others: a run would wait until they respond.

    Nodes only change places with nodes of the same kind (device, slots, container), so that the node at each
    position of a plan stays of that kind; nodes with equal load keep their order.
    """
    if wanted >= len(cluster.nodes):
        return cluster

    def order(node: Node) -> tuple[bool, int]:
        return node.name in doubtful, load.get(node.name, 0)

    kinds: dict[tuple[object, ...], list[Node]] = {}
    for node in cluster.nodes:
        kinds.setdefault(kind_of(node), []).append(node)
    queues = {kind: iter(sorted(nodes, key=order)) for kind, nodes in kinds.items()}
    return cluster.model_copy(update={"nodes": tuple(next(queues[kind_of(node)]) for node in cluster.nodes)})


def kept_part(cluster: Cluster, wanted: int) -> Cluster:
    """Return the part of a placed cluster that is stored with a run: its nodes, and others for a confirm run.

    Each task of a run reads it, so it must not grow with the cluster.
    """
    return cluster.model_copy(update={"nodes": cluster.nodes[: max(_KEPT_NODES, 2 * wanted)]})


def rotated(cluster: Cluster) -> Cluster:
    """Return the cluster with its nodes in another order: of each kind the first node becomes the last."""
    kinds: dict[tuple[object, ...], list[Node]] = {}
    for node in cluster.nodes:
        kinds.setdefault(kind_of(node), []).append(node)
    queues = {kind: iter([*nodes[1:], nodes[0]]) for kind, nodes in kinds.items()}
    return cluster.model_copy(update={"nodes": tuple(next(queues[kind_of(node)]) for node in cluster.nodes)})


def kind_of(node: Node) -> tuple[object, ...]:
    """Return what nodes have in common of which a run may use any instead of another."""
    return node.device, node.slots, node.container.model_dump_json() if node.container else ""
