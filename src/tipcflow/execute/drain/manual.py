"""Drains of users: they apply on all clusters, also on those with `drain: ask`."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tipcflow.domain import Cluster, ConfigError
from tipcflow.domain.numbers.units import first_names, utc_minute
from tipcflow.domain.run.drains import DoubtfulDocument, Drain, DrainsDocument
from tipcflow.execute.drain.drains import all_drains, drained_nodes
from tipcflow.report.overview.node_history import CHAINS, NodeHistory, NodeTrend

if TYPE_CHECKING:
    from tipcflow.store import Store

_RUNS = 1000
_LISTED = 12


def start_drain(
    store: "Store",
    clusters: Sequence[Cluster],
    node: str,
    *,
    who: str,
    why: str,
    history_of: Callable[[str], NodeHistory],
) -> Drain:
    """Take a node out of service.

    If its probes show that it is slower than before, the runs since then are marked as doubtful.

    Args:
        clusters: those that may have the node.
        history_of: name of a cluster -> the history of its nodes.

    Raises:
        ConfigError: no cluster has the node, several have it, it is drained already, or no run is stored.
    """
    cluster = _cluster_of(clusters, node)
    if known := drained_nodes(store, cluster).get(node):
        raise ConfigError(
            "is drained already",
            key="NODE",
            found=node,
            expected="a node in service",
            hint=f"{utc_minute(known.at)} by {known.who}: {known.why}",
        )
    trend = next((each for each in history_of(cluster.name).slow if each.node == node), None)
    drain = Drain(
        cluster=cluster.name,
        node=node,
        at=store.now(),
        who=who,
        why=why,
        doubtful=trend.doubtful if trend else (),
    )
    run, key = _place(store, drain, trend)
    store.documents.merge(run, DrainsDocument, {key: drain})
    for run in store.runs.known(drain.doubtful):
        store.documents.put(run, DoubtfulDocument(why=f"node {node} is slower than before: {why}"))
    return drain


def _cluster_of(clusters: Sequence[Cluster], node: str) -> Cluster:
    named = [cluster for cluster in clusters if any(each.name == node for each in cluster.nodes)]
    if len(named) == 1:
        return named[0]
    keys = sorted(f"{cluster.name}/{each.name}" for cluster in named or clusters for each in cluster.nodes)
    raise ConfigError(
        "is a node of several clusters" if named else "is not a node of a cluster file",
        key="NODE",
        found=node,
        expected=f"one of {first_names(keys, _LISTED)}" if keys else "a node of a cluster in use",
        hint="name the cluster: --cluster" if named else "",
    )


def _place(store: "Store", drain: Drain, trend: NodeTrend | None) -> tuple[str, str]:
    """Return the run with which the drain is stored, and its key there.

    The run is that of the slowdown, or the newest one on the node, or the newest one. Ended drains stay.

    Raises:
        ConfigError: the database has no run.
    """
    known = [each for each in all_drains(store) if each.drain.key == drain.key]
    # tipcflow's drain of a cluster that is `drain: ask` now has no effect: the user's replaces it.
    if unused := next((each for each in known if each.drain.ended_at is None), None):
        return unused.run, unused.key
    newest = store.runs.newest(limit=_RUNS)
    on_node = [run.id for run in newest if run.cluster == drain.cluster and drain.node in run.nodes]
    since = [change.since for change in trend.changes if change.source != CHAINS] if trend else []
    runs = [*since, *on_node, *(run.id for run in newest[:1])]
    if not runs:
        raise ConfigError(
            "a drain is stored with a run, and the database has no run",
            key="NODE",
            found=drain.node,
            expected="a node of a cluster with stored runs",
            hint="remove the node from the cluster file instead",
        )
    is_taken = any(each.run == runs[0] for each in known)
    return runs[0], f"{drain.key}@{drain.at:.3f}" if is_taken else drain.key
