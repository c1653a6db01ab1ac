"""Leftovers of ended runs on the nodes of all configured clusters, and requests without a waiting process."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tipcflow.domain import Cluster, InfraError
from tipcflow.domain.numbers.units import counted
from tipcflow.execute.allocation.leftovers import end_leftovers
from tipcflow.execute.sweeps.maintenance import Upkeep, known_clusters, place_of
from tipcflow.execute.sweeps.reap import Reaped, Reaper

AT_ONCE = 8


def leftovers(upkeep: Upkeep) -> str:
    """End jobs of runs that have a status and hold no live lease; unfinished runs are not touched."""
    clusters = known_clusters(upkeep)
    allocations = _allocations(upkeep, [cluster for cluster in clusters if cluster.slurm is not None])
    inventories = [cluster for cluster in clusters if cluster.slurm is None]
    nodes = {place_of(node): node for cluster in inventories for node in cluster.nodes}
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
        f"{allocations}"
    )


def _allocations(upkeep: Upkeep, clusters: Sequence[Cluster]) -> str:
    """End the allocations of ended runs; return words about them for the summary, '' without Slurm clusters."""
    ended = 0
    for cluster in clusters:
        try:
            lines = end_leftovers(upkeep.store, cluster, upkeep.connect)
        except InfraError as error:
            lines = [error.message]
        for line in lines:
            upkeep.report(f"cluster {cluster.name}: {line}")
        ended += sum(line.endswith("was ended") for line in lines)
    return f"; {counted(ended, 'allocation')} of Slurm ended" if clusters else ""


def _report(upkeep: Upkeep, result: Reaped) -> None:
    for line in result.lines:
        upkeep.report(f"node {result.node}: {line}")
