"""Abandoned runs: runs without a status whose owner is gone are closed and judged. Active runs are never
touched."""

from tipcflow.domain import Run, Status, TipcflowError
from tipcflow.execute.run import phases as task_phases
from tipcflow.execute.run.context import TaskContext
from tipcflow.execute.sweeps.maintenance import ABANDONED_S, Owner, Upkeep


def runs_without_status(upkeep: Upkeep) -> str:
    """Give every abandoned run a status; return how many there were."""
    runs = upkeep.store.unfinished_runs()
    ended = 0
    for run in runs:
        why = why_abandoned(upkeep, run)
        if why:
            finished = end_run(upkeep, run.id, why)
            upkeep.say(f"{run.id}: {finished.status}: {finished.reason}")
            ended += 1
    return f"{len(runs)} runs without a status: {ended} got one, {len(runs) - ended} are still running"


def why_abandoned(upkeep: Upkeep, run: Run) -> str:
    """Return why a run is abandoned; '' if it is or may be active.

    A DAG run that the scheduler does not know may belong to another scheduler: such a run gets the same time limit
        as a run of the CLI, which cannot be queried either.
    """
    known = upkeep.store.document(run.id, "airflow")
    if known is not None:
        owner = upkeep.owner(known["dag_id"], known["run_id"])
        if owner is Owner.LIVING:
            return ""
        if owner is Owner.ENDED:
            return "its DAG run ended without giving it a status"
    if any(lease.run == run.id and lease.live(upkeep.now) for lease in upkeep.store.leases()):
        return ""
    age = upkeep.now - run.created_at
    if any(place.request.run == run.id for place in upkeep.store.lease_queue(upkeep.now)):
        return ""
    asked = (upkeep.store.document(run.id, "request") or {}).get("wait_s")
    wait_s = (upkeep.store.document(run.id, "policy") or {}).get("lease_wait_s") if asked is None else asked
    if age < max(ABANDONED_S, float(wait_s or 0.0)):
        return ""
    return f"abandoned: no lease, started {age / 3600:.0f} h ago"


def end_run(upkeep: Upkeep, run_id: str, why: str) -> Run:
    """Collect, release and judge; the run gets a status even if one of these fails. Steps that ended keep
    theirs."""
    store = upkeep.store
    context = TaskContext(run_id, store, upkeep.home, upkeep.connect, upkeep.listen(run_id))
    for phase in (task_phases.collect_run, task_phases.release_run):
        try:
            for line in phase(context):
                upkeep.say(f"{run_id}: {line}")
        except Exception as error:
            upkeep.say(f"{run_id}: {phase.__name__} failed: {error!r}")
    if store.document(run_id, "request") is None:
        store.finish_run(run_id, Status.INFRA_FAILURE, f"it ended before it had a plan; {why}", upkeep.now)
        return store.get_run(run_id)
    try:
        status, reason = task_phases.judge_run(context)
        if status is Status.CANCELLED:
            status, reason = Status.INFRA_FAILURE, ""  # no user stopped it
        store.put_document(run_id, "judgement", {"status": status.value, "reason": _both(reason, why)})
        return task_phases.finish_run(context)
    except Exception as error:
        said = str(error) if isinstance(error, TipcflowError) else repr(error)
        store.finish_run(run_id, Status.INFRA_FAILURE, f"{why}; it could not be judged: {said}", upkeep.now)
        return store.get_run(run_id)


def _both(reason: str, why: str) -> str:
    return f"{reason}; {why}" if reason else why
