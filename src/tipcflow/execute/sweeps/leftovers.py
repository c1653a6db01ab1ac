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
    for one in reaped:
        _say(upkeep, one)
    forgotten = upkeep.store.drop_dead_requests(upkeep.now)
    ended = {run for one in reaped for run in one.ended}
    asked = sum(not one.unreachable for one in reaped)
    return (
        f"{asked} nodes checked: leftovers of {len(ended)} runs ended; {len(forgotten)} expired requests dropped"
    )


def _say(upkeep: Upkeep, one: Reaped) -> None:
    for line in one.lines:
        upkeep.say(f"node {one.node}: {line}")
