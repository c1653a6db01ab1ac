"""Leftovers of ended runs on the nodes of all configured clusters, and requests without a waiting process."""

from concurrent.futures import ThreadPoolExecutor

from tipcflow.execute.sweeps.maintenance import Upkeep, known_clusters, place_of
from tipcflow.execute.sweeps.reap import Reaped, Reaper

AT_ONCE = 8


def leftovers(upkeep: Upkeep) -> str:
    """End jobs of runs that have a status and hold no live lease; unfinished runs are not touched."""
    nodes = {place_of(node): node for cluster in known_clusters(upkeep) for node in cluster.nodes}
    reaper = Reaper(upkeep.store, upkeep.connect, now=upkeep.now, ended_only=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        reaped = list(pool.map(reaper.reap, nodes.values()))
    for result in reaped:
        _report(upkeep, result)
    forgotten = upkeep.store.queue.drop_dead(upkeep.now)
    ended = {run for result in reaped for run in result.ended}
    reached = sum(not result.unreachable for result in reaped)
    return (
        f"{reached} nodes checked: leftovers of {len(ended)} runs ended; {len(forgotten)} expired requests dropped"
    )


def _report(upkeep: Upkeep, result: Reaped) -> None:
    for line in result.lines:
        upkeep.report(f"node {result.node}: {line}")
