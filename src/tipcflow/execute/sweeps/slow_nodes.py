"""Drains nodes that are slower than before, on clusters with `drain: auto`."""

from tipcflow.execute.drain.drains import AUTO, drain_slowest
from tipcflow.execute.overview.node_history import recent_node_history
from tipcflow.execute.sweeps.maintenance import Upkeep, known_clusters


def slow_nodes(upkeep: Upkeep) -> str:
    """Drain at most one node per cluster; return a line with counts."""
    clusters = [cluster for cluster in known_clusters(upkeep) if cluster.drain == AUTO]
    drained = 0
    for cluster in clusters:
        history = recent_node_history(upkeep.store, cluster=cluster.name, now=upkeep.now)
        drain, line = drain_slowest(upkeep.store, cluster, history, upkeep.now)
        if line:
            upkeep.report(f"cluster {cluster.name}: {line}")
        if drain is not None:
            drained += 1
            undo = f"tipcflow nodes undrain {drain.node} --cluster {cluster.name} --because '…'"
            upkeep.report(f"cluster {cluster.name}: `{undo}` returns the node to service")
    return f"{len(clusters)} clusters drain by themselves: {drained} nodes drained"
