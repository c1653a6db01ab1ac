"""Abandoned runs: runs without a status whose owner does not run any more are closed and judged.

Active runs are never touched."""

from collections.abc import Callable, Collection
from functools import partial

from tipcflow.config.run_documents import PolicyDocument
from tipcflow.domain import Run, Status, TipcflowError
from tipcflow.domain.numbers.units import limit
from tipcflow.domain.run_documents import AirflowDocument, ClusterDocument, JudgementDocument
from tipcflow.execute.allocation.document import HolderDocument
from tipcflow.execute.request import RequestDocument
from tipcflow.execute.run import phases as task_phases
from tipcflow.execute.run import status_spool as spool
from tipcflow.execute.run.context import TaskContext
from tipcflow.execute.sweeps.maintenance import ABANDONED_S, Owner, Upkeep


def runs_without_status(upkeep: Upkeep) -> str:
    """Give every abandoned run a status; return how many there were."""
    collect_left(upkeep)
    runs = upkeep.store.runs.unfinished()
    ended = 0
    for run in runs:
        why = abandoned_reason(upkeep, run)
        if why:
            finished = end_run(upkeep, run.id, why)
            upkeep.report(f"{run.id}: {finished.status}: {finished.reason}")
            ended += 1
    return f"{len(runs)} runs without a status: {ended} got one, {len(runs) - ended} are still running"


def collect_left(upkeep: Upkeep, *, addresses: Collection[str] | None = None, run: str = "") -> None:
    """Collect, release and judge the runs of killed controllers of this machine, and report each run.

    Args:
        addresses: only runs that use a node with one of these addresses, or were not planned; None for all.
        run: only this run; '' for all.
    """
    store = upkeep.store
    for left in store.runs.known(spool.left_runs(upkeep.home)):
        used = _addresses(upkeep, left)
        if run not in ("", left) or (addresses is not None and used and not used & set(addresses)):
            continue
        spool.forget_left(upkeep.home, left)
        # Without a judgement, a run with a status counts as one that ended before its start.
        store.documents.put(left, JudgementDocument(status=Status.INFRA_FAILURE, reason=spool.NO_CONTROLLER))
        finished = end_run(upkeep, left, spool.NO_CONTROLLER)
        upkeep.report(f"{left}: {finished.status}: {finished.reason}")


def _addresses(upkeep: Upkeep, run: str) -> set[str]:
    """Return the addresses of a run's nodes; empty before planning, and if Slurm allocates them."""
    cluster, plan = upkeep.store.documents.get(run, ClusterDocument), upkeep.store.plans.get_or_none(run)
    if cluster is None or plan is None or cluster.root.slurm is not None:
        return set()
    return {node.address for node in cluster.root.nodes if node.name in plan.nodes}


def abandoned_reason(upkeep: Upkeep, run: Run) -> str:
    """Return why a run is abandoned; '' if it is or may be active.

    A DAG run that the scheduler does not know may belong to another scheduler: such a run gets the same time limit
        as a run of the CLI, which cannot be queried either.
    """
    known = upkeep.store.documents.get(run.id, AirflowDocument)
    if known is not None:
        owner = upkeep.owner(known.dag_id, known.run_id)
        if owner is Owner.LIVING:
            return ""
        if owner is Owner.ENDED:
            return "DAG run ended without a run status"
    if any(lease.run == run.id and lease.live(upkeep.now) for lease in upkeep.store.leases.all()):
        return ""
    holder = upkeep.store.documents.get(run.id, HolderDocument)
    if holder is not None and upkeep.now < holder.until:
        return ""  # a run on Slurm, which has no leases
    age = upkeep.now - run.created_at
    if any(place.request.run == run.id for place in upkeep.store.queue.places(upkeep.now)):
        return ""
    if age < max(ABANDONED_S, _waits_s(upkeep, run)):
        return ""
    return f"abandoned: no lease, started {limit(age)} ago"


def _waits_s(upkeep: Upkeep, run: Run) -> float:
    """Return how long the run may wait for slots, seconds; 0 for a run that was never resolved."""
    documents = upkeep.store.documents.several(run.id, (RequestDocument, PolicyDocument))
    request, policy = documents.get(RequestDocument), documents.get(PolicyDocument)
    if request and request.root.wait_s is not None:
        return request.root.wait_s
    return policy.root.lease_wait_s if policy else 0.0


def end_run(upkeep: Upkeep, run_id: str, why: str) -> Run:
    """Collect, release and judge; the run gets a status even if one of these fails. Steps that ended keep
    theirs."""
    store = upkeep.store
    context = TaskContext(run_id, store, upkeep.home, upkeep.connect, upkeep.listen(run_id))
    phases: dict[str, Callable[[TaskContext], list[str]]] = {
        "collect_run": partial(task_phases.collect_run, stopped=False),  # no user stopped the run
        "release_run": task_phases.release_run,
    }
    for name, phase in phases.items():
        try:
            for line in phase(context):
                upkeep.report(f"{run_id}: {line}")
        except Exception as error:
            upkeep.report(f"{run_id}: {name} failed: {error!r}")
    if store.documents.get(run_id, RequestDocument) is None:
        store.runs.finish(run_id, Status.INFRA_FAILURE, f"run ended before planning; {why}", upkeep.now)
        return store.runs.get(run_id)
    try:
        status, reason = task_phases.judge_run(context)
        judged = store.documents.get(run_id, JudgementDocument)
        parts = (judged.parts if judged else ()) or (reason,)
        if status is Status.CANCELLED:
            status, parts = Status.INFRA_FAILURE, ()  # no user stopped it
        parts = (*filter(None, parts), why)
        store.documents.put(run_id, JudgementDocument(status=status, reason="; ".join(parts), parts=parts))
        return task_phases.finish_run(context)
    except Exception as error:
        message = str(error) if isinstance(error, TipcflowError) else repr(error)
        store.documents.remove(run_id, JudgementDocument)
        store.runs.finish(run_id, Status.INFRA_FAILURE, f"{why}; it could not be judged: {message}", upkeep.now)
        return store.runs.get(run_id)
