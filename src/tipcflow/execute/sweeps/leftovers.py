"""What runs that have ended left on the nodes of all configured clusters, and requests whose waiters are gone."""

from concurrent.futures import ThreadPoolExecutor

from tipcflow.execute.sweeps.maintenance import Upkeep, known_clusters, place_of
from tipcflow.execute.sweeps.reap import Reaped, Reaper

AT_ONCE = 8


def leftovers(upkeep: Upkeep) -> str:
    """End jobs of runs that have a status and hold no live lease; runs that may go on are left alone."""
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
        f"{asked} nodes looked at: what was left of {len(ended)} runs was ended; "
        f"{len(forgotten)} dead requests were forgotten"
    )


def _say(upkeep: Upkeep, one: Reaped) -> None:
    for line in one.lines:
        upkeep.say(f"node {one.node}: {line}")
