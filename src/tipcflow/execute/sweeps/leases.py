"""Expired leases: their nodes are listed, and slots without processes are released."""

import contextlib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

from tipcflow.config.cluster import load_cluster
from tipcflow.domain import ConfigError, InfraError, Node
from tipcflow.domain.run.names import JobId
from tipcflow.domain.run_documents import ClusterDocument
from tipcflow.execute.node.listing import jobs_with_processes
from tipcflow.execute.node.session import NodeSession
from tipcflow.execute.sweeps.maintenance import Upkeep
from tipcflow.remote.host_slots import runs_holding, short
from tipcflow.store import Lease

AT_ONCE = 8


def expired_leases(upkeep: Upkeep) -> str:
    """Drop expired leases on nodes without processes of their run; end leftovers of runs that have a status."""
    expired: dict[tuple[str, str], list[Lease]] = defaultdict(list)
    for lease in upkeep.store.leases.all():
        if not lease.live(upkeep.now):
            expired[lease.node, lease.run].append(lease)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        dropped = sum(pool.map(lambda place: _of_run(upkeep, place[0], place[1], expired[place]), sorted(expired)))
    return f"{sum(map(len, expired.values()))} leases expired: {dropped} were dropped"


def node_at(upkeep: Upkeep, address: str, run: str) -> Node | None:
    """Return the node of that address: from the run's cluster, else from a cluster file."""
    own = upkeep.store.documents.get(run, ClusterDocument)
    known = [own.root] if own else []
    for path in sorted((upkeep.config_dir / "clusters").glob("*.yaml")):
        with contextlib.suppress(ConfigError):  # reported by the sweep of the clusters
            known.append(load_cluster(path.stem, upkeep.config_dir))
    return next((node for cluster in known for node in cluster.nodes if node.address == address), None)


def _of_run(upkeep: Upkeep, address: str, run: str, leases: list[Lease]) -> int:
    node = node_at(upkeep, address, run)
    if node is None:
        upkeep.report(f"run {run}: {len(leases)} leases kept: no cluster file lists {address}")
        return 0
    with contextlib.closing(NodeSession(node, upkeep.connect)) as session:
        try:
            session.prepare()
            left = _freed(upkeep, session, run) or _elsewhere(session, run)
        except InfraError as error:
            upkeep.report(f"run {run}: {len(leases)} leases kept: node cannot be listed: {error.message}")
            return 0
    if left:
        upkeep.report(f"run {run}: {len(leases)} leases kept: jobs on node {node.name}: {', '.join(left)}")
        return 0
    return upkeep.store.leases.drop_expired(leases, upkeep.now)


def _freed(upkeep: Upkeep, session: NodeSession, run: str) -> list[str]:
    """Return the run's jobs that are still on the node; those of a run with a status are ended first."""
    jobs = _jobs(session, run)
    if jobs and upkeep.store.runs.get(run).status is not None:
        ended = ", ".join(map(str, jobs))
        upkeep.report(f"run {run} has ended, but had jobs on node {session.node.name}; ended there: {ended}")
        for job in jobs:
            session.reap(job)
        jobs = _jobs(session, run)
    return [str(job) for job in jobs]


def _elsewhere(session: NodeSession, run: str) -> list[str]:
    """Return a message if the run holds slots of the node's host in another workspace."""
    holds = short(run) in runs_holding(session.list_ours(), session.node)
    return ["a job in another workspace of that host"] if holds else []


def _jobs(session: NodeSession, run: str) -> list[JobId]:
    """Return the run's jobs that have processes on the node."""
    return jobs_with_processes(session.list_ours(), run)
