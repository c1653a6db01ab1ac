"""A run moves to other nodes of its cluster while it waits: those that are free first."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tipcflow.domain import Cluster, Plan
from tipcflow.domain.run_documents import ClusterDocument
from tipcflow.execute.drain.drains import drained_nodes
from tipcflow.execute.resolve.moved import MovedDocument
from tipcflow.execute.resolve.placement import kind_of
from tipcflow.execute.resolve.resolve import Resolved

if TYPE_CHECKING:
    from tipcflow.execute.request import RunRequest
    from tipcflow.store import Store


def may_move(store: "Store", run: str, request: "RunRequest") -> bool:
    """Whether a run may get other nodes: no other run determines them, and no step has started on them."""
    return not (request.confirms or request.nodes_of or request.evaluates or store.attempts.of(run))


def groups_of(store: "Store", cluster: Cluster, plan: Plan) -> list[list[str]]:
    """Return the addresses of the nodes of which the run may use any instead of another, by kind.

    These are the nodes that are stored with the run, without drained ones: the queue's reads do not grow with the
    cluster.
    """
    drained = drained_nodes(store, cluster)
    kinds: dict[tuple[object, ...], list[str]] = {}
    for node in cluster.nodes:
        if node.name in plan.nodes or node.name not in drained:
            kinds.setdefault(kind_of(node), []).append(node.address)
    return [group for group in kinds.values() if len(group) > 1]


def move_run(store: "Store", run: str, resolved: Resolved, moved: Mapping[str, str]) -> Plan:
    """Replace nodes of a run, and store its cluster and its plan.

    Args:
        moved: address of a node of the plan -> address of the node that replaces it, of the same kind.
    """
    before = store.plans.get(run).nodes
    if store.documents.get(run, MovedDocument) is None:
        store.documents.put(run, MovedDocument(planned=tuple(before)))
    resolved = replace(resolved, cluster=_exchanged(resolved.cluster, moved))
    plan = resolved.plan(run)
    store.documents.put(run, ClusterDocument(resolved.cluster))
    store.plans.replace(run, plan)
    store.runs.update(run, nodes=plan.nodes)
    return plan


def _exchanged(cluster: Cluster, moved: Mapping[str, str]) -> Cluster:
    """Return the cluster with these nodes in each other's places: the plan uses the first ones."""
    nodes = list(cluster.nodes)
    for before, after in moved.items():
        addresses = [node.address for node in nodes]
        old, new = addresses.index(before), addresses.index(after)
        nodes[old], nodes[new] = nodes[new], nodes[old]
    return cluster.model_copy(update={"nodes": tuple(nodes)})
