"""Folders of ended runs on the nodes of all configured clusters."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tipcflow.domain import Cluster, InfraError, Node, Run, Status
from tipcflow.domain.run.run import RUN_ID
from tipcflow.execute.node.listing import jobs_with_processes
from tipcflow.execute.node.session import NodeSession
from tipcflow.execute.request import RequestDocument
from tipcflow.execute.sweeps.maintenance import OTHER_FOLDER_S, PASSED_FOLDER_S, Upkeep, known_clusters, place_of
from tipcflow.remote import housekeeping

AT_ONCE = 8
# What no run has used for this time is removed from caches.
BUILD_DAYS = 30


@dataclass(frozen=True)
class _Node:
    """The result for one node: number of removed and remaining run folders, of removed entries of its
    cache, and why it was unreachable."""

    removed: int = 0
    kept: int = 0
    cached: int = 0
    trouble: str = ""


def node_folders(upkeep: Upkeep) -> str:
    """Remove folders of runs that ended long enough ago; runs unknown to the database are not touched."""
    seen: set[tuple[str, str, str]] = set()
    removed = kept = reached = cached = 0
    for cluster in (known for known in known_clusters(upkeep) if known.slurm is None):
        nodes = [node for node in cluster.nodes if place_of(node) not in seen]
        seen.update(place_of(node) for node in nodes)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            swept = list(pool.map(lambda node: _sweep(upkeep, node), nodes))
        _report_trouble(upkeep, cluster, [result.trouble for result in swept])
        removed += sum(result.removed for result in swept)
        kept += sum(result.kept for result in swept)
        cached += sum(result.cached for result in swept)
        reached += sum(not result.trouble for result in swept)
    more = f"; {cached} unused entries of caches removed" if cached else ""
    return f"{reached} nodes checked: folders of {removed} runs removed, folders of {kept} runs stay{more}"


def is_removable(run: Run, now: float, *, keep: bool = False) -> bool:
    """Whether a run's folder on a node may be removed.

    Args:
        keep: whether the request keeps the folder of a passed run.
    """
    if run.status is None or run.ended_at is None:
        return False
    passed = run.status is Status.PASS and not keep
    return now - run.ended_at > (PASSED_FOLDER_S if passed else OTHER_FOLDER_S)


def _report_trouble(upkeep: Upkeep, cluster: Cluster, troubles: list[str]) -> None:
    if troubles and all(troubles):
        upkeep.report(f"cluster {cluster.name} is skipped: {troubles[0]}")
        return
    for trouble in filter(None, troubles):
        upkeep.report(trouble)


def _sweep(upkeep: Upkeep, node: Node) -> _Node:
    removed = kept = cached = 0
    with contextlib.closing(NodeSession(node, upkeep.connect)) as session:
        try:
            # Without creating a workspace: an unused node is not changed.
            text = session.call(housekeeping.list_runs(node), "list its run folders").decode(errors="replace")
            names = {name for name in text.splitlines() if RUN_ID.fullmatch(name)}
            old = [run for run in upkeep.store.runs.known(names).values() if _old(upkeep, run)]
            kept = len(names) - len(old)
            busy = _busy(session) if old else set()
            for run in old:
                if run.id in busy:
                    upkeep.report(
                        f"run {run.id} has ended, but has processes on node {node.name}: its folder stays"
                    )
                    kept += 1
                    continue
                session.remove_run(run.id)
                removed += 1
            listing = session.call(
                housekeeping.clean_cache(node, days=BUILD_DAYS), "remove unused files of its cache", timeout=300
            )
            cached = len(listing.splitlines())
        except InfraError as error:
            return _Node(removed, kept, cached, error.message)
    return _Node(removed, kept, cached)


def _old(upkeep: Upkeep, run: Run) -> bool:
    if not is_removable(run, upkeep.now):
        return False
    request = upkeep.store.documents.get(run.id, RequestDocument)
    keep = request is not None and request.root.keep
    return is_removable(run, upkeep.now, keep=keep)


def _busy(session: NodeSession) -> set[str]:
    """Return the runs that have processes on the node."""
    session.prepare()
    return {job.run for job in jobs_with_processes(session.list_ours())}
