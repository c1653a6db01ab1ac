"""A run's allocation: requested once, waited for with a deadline, and ended with the run.

The allocation replaces the leases of the run's slots: Slurm queues the run, gives it whole nodes, and ends all of
its processes.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tipcflow.domain import Cluster, InfraError, Plan, SlurmStep
from tipcflow.domain.numbers.units import limit
from tipcflow.domain.run.allocation_wait import AllocationWaitDocument, SlurmPlace
from tipcflow.domain.run_documents import ClusterDocument
from tipcflow.execute.allocation.client import LOGIN, SlurmClient, waiting_message
from tipcflow.execute.allocation.document import AllocationDocument
from tipcflow.execute.allocation.holder import Holder
from tipcflow.execute.allocation.names import is_of, job_name
from tipcflow.execute.node.link import Connect
from tipcflow.execute.resolve.resolve import Resolved
from tipcflow.remote.slurm.output import SlurmJob, SlurmNode

if TYPE_CHECKING:
    from tipcflow.store import Store

POLL_EVERY_S = 2.0
# A slurmctld that does not respond is queried less often.
RETRY_EVERY_S = 5.0
RELEASE_S = 60.0
# Of a job whose batch script has ended by itself: its starters were not contacted in time (`commands.UNUSED_S`).
UNUSED = ("COMPLETING", "COMPLETED")
# Accepted requests of one run: an unused allocation holds nodes for `commands.UNUSED_S`, and a run whose jobs
# Slurm does not list would request without end.
MAX_REQUESTS = 20


@dataclass(frozen=True)
class Held:
    """The nodes of a run.

    Attributes:
        resolved: the request with these nodes.
        fence: number that is larger than those of earlier allocations of the nodes.
    """

    resolved: Resolved
    fence: int


class AllocatedSlots:
    """Stands for the lease of a run whose nodes Slurm allocates; see `execute.leases.keeper.LeaseKeeper`.

    Args:
        fence: see `Held`.
    """

    def __init__(self, fence: int) -> None:
        self.fence = fence
        self.keep: set[str] = set()
        self.heir: Callable[[], str] | None = None
        self.queue_s: float | None = None  # Slurm queues the runs of its clusters

    def __enter__(self) -> "AllocatedSlots":
        return self

    def __exit__(self, error: object = None, *_: object) -> None:
        if self.heir is not None and error is None:
            self.heir()  # it requests an allocation of its own


class Allocation:
    """The allocation of one run.

    Args:
        cluster: its cluster, before or after the allocation.
        connect: connects to the login node.
        nodes: number of nodes.
        nodelist: names of the nodes that it must have; any nodes if empty.
        note: receives one line when the run has nodes, and when it requests another allocation.
    """

    def __init__(
        self,
        store: "Store",
        run: str,
        cluster: Cluster,
        connect: Connect,
        *,
        nodes: int = 0,
        nodelist: tuple[str, ...] = (),
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._run = run
        self._cluster = cluster
        self._client = SlurmClient(cluster, connect)
        self._nodes = nodes
        self._nodelist = nodelist
        self._note = note
        self._place: SlurmPlace | None = None

    def __enter__(self) -> "Allocation":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def try_once(self) -> tuple[SlurmJob | None, str]:
        """Request the allocation if there is no request; return (the running job or None, the reason for waiting).

        Raises:
            ConfigError: Slurm refuses a value of the cluster file, or is too old.
            InfraError: Slurm refuses the request or has ended the job (`passing` is false), or does not respond.
        """
        job = self._job()
        if job.is_running:
            return job, ""
        if job.is_waiting:
            return None, waiting_message(self._keep_place(job))
        if job.state not in UNUSED:
            raise InfraError(f"Slurm job {job.id} is {job.state} before it had nodes ({job.reason})")
        return None, f"Slurm job {job.id} ended before the run used its nodes ({job.ended_by})"

    def may_continue(self, error: InfraError) -> bool:
        """Whether the run keeps waiting after an error: of Slurm, or of the login node if it has a request."""
        if error.passing or error.node != LOGIN:
            return error.passing
        known = self._store.documents.get(self._run, AllocationDocument)
        return known is not None and bool(known.job)

    def allocated(self, job: SlurmJob) -> Cluster:
        """Return the cluster with the nodes of the running allocation.

        Raises:
            InfraError: the login node does not know the address of a node.
        """
        nodes = self._client.nodes(job.nodelist)
        for node in nodes:
            if not node.address:
                hint = "NodeAddr of the node in slurm.conf must be an address, or a name that the login node knows"
                raise InfraError.of_node(node.name, "its address is unknown on the login node", hint=hint)
        return with_nodes(self._cluster, job, nodes)

    def use(self, job: SlurmJob) -> Cluster:
        """Contact the starters on the nodes of the running allocation; return the cluster with these nodes.

        Raises:
            InfraError: as `allocated`, or Slurm does not respond.
        """
        cluster = self.allocated(job)
        why = self._client.contact(cluster.nodes)
        self._note(f"Slurm job {job.id} has nodes {job.nodelist}")
        if why:
            self._note(f"the nodes of Slurm job {job.id} do not respond yet: {why}")
        return cluster

    def end(self) -> str:
        """End the allocation, whether it is pending or running, and jobs of earlier requests that are left.

        Returns:
            why it could not be ended, '' if it was.
        """
        document = self._store.documents.get(self._run, AllocationDocument)
        if document is None:
            return ""
        deadline, why, left = time.monotonic() + RELEASE_S, "", [document.name]
        while True:
            try:
                for name in left:
                    self._client.cancel(name)
                jobs = [job for job in self._client.own() if is_of(job.name, self._run)]
                if not jobs:
                    return ""
                left = sorted({document.name, *(job.name for job in jobs)})
                why = f"still active in Slurm: {', '.join(f'job {job.id}' for job in jobs)}"
            except InfraError as error:
                why = error.message
            if time.monotonic() > deadline:
                command = f"scancel --name={','.join(left)}"
                return f"the allocation could not be ended: {why}; end it with: {command}"
            time.sleep(POLL_EVERY_S)

    def _job(self) -> SlurmJob:
        """Return the job of the allocation: that of an earlier request, or of a new one."""
        document = self._store.documents.get(self._run, AllocationDocument)
        if document is None:
            self._client.version()  # before anything is stored: an older Slurm could not end the allocation
            document = AllocationDocument(name=job_name(self._run, 1))
        jobs = self._client.find(document.name)
        active = [job for job in jobs if job.is_active]
        if active:
            for other in active[1:]:  # sbatch was repeated after a request that had succeeded late
                self._client.cancel_job(other.id)
            self._keep(document, active[0].id)
            return active[0]
        if document.job:
            ended = next((job for job in jobs if job.id == document.job), None)
            if ended is not None and ended.state != "COMPLETED" and not self._has_started(document):
                return ended
            state = f" ({ended.ended_by})" if ended else ""  # slurmctld forgets it after `MinJobAge`
            if document.attempt >= MAX_REQUESTS:
                message = (
                    f"Slurm job {document.job} has ended{state}, the last of {MAX_REQUESTS} requests of the run"
                )
                raise InfraError(message, hint="squeue --me, and scontrol show job, on the login node")
            # Slurm may have the job though it does not list it: a run has one allocation at a time.
            self._client.cancel(document.name)
            self._note(f"Slurm job {document.job} has ended{state}: the run requests another allocation")
            attempt = document.attempt + 1
            document = AllocationDocument(
                attempt=attempt, name=job_name(self._run, attempt), planned=document.planned
            )
        # Before sbatch: the run of a dead controller is released by this name.
        self._store.documents.put(self._run, document)
        job = self._client.submit(document.name, nodes=self._nodes, nodelist=self._nodelist)
        self._keep(document, job)
        jobs = self._client.find(document.name)
        return next((known for known in jobs if known.id == job), SlurmJob(job, "PENDING", "", None, None, "", ""))

    def _has_started(self, document: AllocationDocument) -> bool:
        """Whether the run had nodes of that allocation: it then may get another one."""
        known = self._store.documents.get(self._run, ClusterDocument)
        step = known.root.nodes[0].slurm if known else None
        return step is not None and step.job == document.job

    def _keep_place(self, job: SlurmJob) -> SlurmPlace:
        """Return the place of a waiting job, and add it to the record of the wait, if there is one."""
        place = self._client.place(job)
        if place != self._place:
            self._store.documents.change(self._run, AllocationWaitDocument, place=place)
            self._place = place
        return place

    def _keep(self, document: AllocationDocument, job: str) -> None:
        if document.job != job:
            self._store.documents.put(self._run, document.model_copy(update={"job": job}))


def try_to_hold(
    store: "Store", run: str, resolved: Resolved, plan: Plan, connect: Connect, *, note: Callable[[str], None]
) -> tuple[Held | None, str]:
    """Request the nodes of a run from Slurm without waiting; return (its nodes or None, what it waits for).

    Raises:
        ConfigError, InfraError: the run gets no nodes.
    """
    with _requested(store, run, resolved, plan, connect, note) as allocation:
        try:
            job, why = allocation.try_once()
            if job is None:
                return None, why
            cluster = allocation.use(job)
        except InfraError as error:
            if not allocation.may_continue(error):
                raise
            return None, error.message
        return Held(replan(store, run, resolved, cluster), _fence(job)), ""


def _requested(
    store: "Store", run: str, resolved: Resolved, plan: Plan, connect: Connect, note: Callable[[str], None]
) -> Allocation:
    """Return the allocation of the nodes of a plan."""
    count, nodelist = len(plan.nodes), _needed(resolved, plan)
    return Allocation(store, run, resolved.cluster, connect, nodes=count, nodelist=nodelist, note=note)


def with_nodes(cluster: Cluster, job: SlurmJob, nodes: list[SlurmNode]) -> Cluster:
    """Return a Slurm cluster with the nodes of an allocation."""
    source = cluster.slurm
    assert source is not None
    template = cluster.nodes[0]
    allocated = []
    for node in nodes:
        step = SlurmStep(local=source.local, job=job.id, name=job.name, port=node.port, gres=source.gres)
        own = {"name": node.name, "address": node.address, "slurm": step, **source.of_node(node.name)}
        allocated.append(template.model_copy(update=own))
    return cluster.model_copy(update={"nodes": tuple(allocated)})


@contextlib.contextmanager
def held(
    store: "Store",
    run: str,
    resolved: Resolved,
    plan: Plan,
    connect: Connect,
    *,
    wait_s: float,
    note: Callable[[str], None],
    cancel: threading.Event,
) -> Iterator[Held]:
    """Hold the nodes of a run: for a Slurm cluster its allocation, which ends with the context.

    A run with the nodes of another run's running allocation uses that one, and does not end it.

    Args:
        wait_s: maximum time until the allocation has its nodes, seconds.
        note: receives one line whenever the reason for waiting changes, and as in `Allocation`.
        cancel: set when a user stops the run.

    Raises:
        ConfigError, InfraError: the run gets no nodes.
    """
    if resolved.cluster.slurm is None:
        yield Held(resolved, 0)
        return
    if (other := _inherited(resolved.cluster, connect)) is not None:
        yield Held(resolved, _fence(other))
        return
    requested = _requested(store, run, resolved, plan, connect, note)
    with Holder(store, run, resolved.request.owner), requested as allocation:
        try:
            since = store.now()
            store.documents.put(run, AllocationWaitDocument(since=since, until=since + wait_s))
            job, cluster = _await(allocation, wait_s=wait_s, note=note, cancel=cancel)
            store.documents.remove(run, AllocationWaitDocument)
            yield Held(replan(store, run, resolved, cluster), _fence(job))
        finally:
            if why := allocation.end():
                note(why)


def replan(store: "Store", run: str, resolved: Resolved, cluster: Cluster) -> Resolved:
    """Return the request with the nodes of the allocation, and store its cluster and its plan."""
    document = store.documents.get(run, AllocationDocument)
    if document is not None and not document.planned:
        before = store.plans.get(run).nodes
        store.documents.put(run, document.model_copy(update={"planned": tuple(before)}))
    resolved = replace(resolved, cluster=cluster)
    plan = resolved.plan(run)
    store.documents.put(run, ClusterDocument(cluster))
    store.plans.replace(run, plan)
    store.runs.update(run, nodes=plan.nodes)
    return resolved


def release(store: "Store", run: str, connect: Connect) -> str:
    """End the allocation of a run, if it has one; return why it could not be ended, '' if it was."""
    document = store.documents.get(run, ClusterDocument)
    if document is None or document.root.slurm is None:
        return ""
    with Allocation(store, run, document.root, connect) as allocation:
        return allocation.end()


def _await(
    allocation: Allocation, *, wait_s: float, note: Callable[[str], None], cancel: threading.Event
) -> tuple[SlurmJob, Cluster]:
    deadline = time.monotonic() + wait_s
    reported = why = ""
    while True:
        pause = POLL_EVERY_S
        try:
            job, why = allocation.try_once()
            if job is not None:
                return job, allocation.use(job)
        except InfraError as error:
            if not allocation.may_continue(error):
                raise
            why, pause = error.message, RETRY_EVERY_S
        if why != reported:
            note(why)
            reported = why
        if time.monotonic() >= deadline:
            raise InfraError(timeout_message(wait_s, why), hint="--wait-minutes, or `lease_wait_s` of the policy")
        if cancel.wait(min(pause, max(0.1, deadline - time.monotonic()))):
            raise InfraError("stopped while waiting for an allocation")


def timeout_message(wait_s: float, why: str) -> str:
    """Return the message for a run whose waiting time is over."""
    return f"no allocation within {limit(wait_s)}: {why}"


def _needed(resolved: Resolved, plan: Plan) -> tuple[str, ...]:
    """Return the nodes that the allocation must have: those of an earlier run, if that run had an allocation."""
    step = resolved.cluster.nodes[0].slurm
    if step is None or not step.job or not (resolved.request.evaluates or resolved.request.nodes_of):
        return ()
    return tuple(plan.nodes)


def _inherited(cluster: Cluster, connect: Connect) -> SlurmJob | None:
    """Return the running allocation that the cluster's nodes belong to already; None if there is none."""
    step = cluster.nodes[0].slurm
    if step is None or not step.job:
        return None
    with SlurmClient(cluster, connect) as client:
        return client.running(cluster.nodes[0])


def _fence(job: SlurmJob) -> int:
    """Return the start of the allocation, seconds since the epoch: it is later than those before on its nodes."""
    return int(job.starts or 0)
