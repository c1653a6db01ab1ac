"""Slurm's queue as all triggers of this process see it: they share the queries."""

import asyncio
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from tipcflow.domain import Cluster
from tipcflow.execute.allocation.client import login_node
from tipcflow.remote.slurm import commands
from tipcflow.remote.slurm.output import SlurmJob, active_jobs_in
from tipcflow.transport import Completed
from tipcflow_operators.airflow.async_connect import connect_async

# Seconds for which a result is shared: a hundred waiting runs are one login in five seconds, not ten in one.
FRESH_S = 5.0
# Limit of one query, including the login.
LIMIT_S = 60.0


@dataclass(frozen=True)
class Queue:
    """Jobs of the user that wait or run, and the pending jobs of the partition, as printed."""

    jobs: tuple[SlurmJob, ...]
    pending: str

    def waiting(self, name: str) -> SlurmJob | None:
        """Return the oldest waiting job of that name; None without one."""
        return next((job for job in self.jobs if job.name == name and job.is_waiting), None)


class _Shared:
    """The last query of one partition, which may still run."""

    def __init__(self) -> None:
        self.started = float("-inf")
        self.query: asyncio.Task[Queue] | None = None


# A task belongs to its event loop; a triggerer has one.
_SHARED: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Shared]] = WeakKeyDictionary()


async def queue_of(cluster: Cluster, not_before: float) -> Queue:
    """Return the queue of the cluster's partition, at most FRESH_S old.

    Args:
        not_before: time of the event loop; a query that started earlier may lack the caller's job.

    Raises:
        InfraError: the login or `squeue` failed.
        TimeoutError: both together took more than LIMIT_S. All callers that share the query get its error.
    """
    loop = asyncio.get_running_loop()
    shared = _SHARED.setdefault(loop, {}).setdefault(cluster.model_dump_json(), _Shared())
    if shared.query is None or shared.started < not_before or loop.time() - shared.started >= FRESH_S:
        shared.started = loop.time()
        shared.query = loop.create_task(asyncio.wait_for(_query(cluster), LIMIT_S))
    # A caller that is cancelled does not end the query of the others.
    return await asyncio.shield(shared.query)


async def _query(cluster: Cluster) -> Queue:
    async with connect_async(login_node(cluster)) as transport:
        jobs = await transport.run(commands.own(), check=True)
        pending = await transport.run(commands.pending(cluster))
    return Queue(tuple(active_jobs_in(_text(jobs))), _text(pending))


def _text(done: Completed) -> str:
    return done.stdout.decode("utf-8", "replace")
