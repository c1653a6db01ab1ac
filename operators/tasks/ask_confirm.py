"""Requests a confirm run: `judge` starts a run of DAG `confirm` and waits for it."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow.sdk import Context

from operators.airflow import dag_runs
from operators.airflow.child_runs import child_run_id
from tipcflow.domain import InfraError, TipcflowError, run_id_of
from tipcflow.execute.verdict import confirm

if TYPE_CHECKING:
    from tipcflow.execute.run.context import TaskContext
    from tipcflow.execute.verdict.confirm import Asked

# A separate DAG: as runs of the chain's DAG, confirm runs would queue behind runs that wait for them.
DAG_ID = "confirm"
# The only param: the run to confirm.
CONFIRMS = "confirms"
# Upper limit of confirm runs of one run.
_MOST = 20


def waited_for(run: "TaskContext", context: Context) -> tuple[str, "Asked"] | None:
    """Return (id of the confirm DAG run, its request) if the run must wait for it; start it if necessary.

    If Airflow rejects the start, the run does not wait: the numbers stay unconfirmed, and checks give the reason.
    """
    asked = confirm.asked_of(run.store, run.run) or _ask(run, context)
    if asked is None or not confirm.open_question(run.store, run.run):
        return None
    kept = run.store.document(run.run, confirm.DOCUMENT) or {}
    if not asked.dag_run_id:
        return None
    child, at = asked.dag_run_id, datetime.fromisoformat(kept["run_after"])
    try:
        # Repeated if this task died between the request and the start.
        if dag_runs.state_of(DAG_ID, child) is None:
            note = f"confirms {context['dag_run'].dag_id} {context['dag_run'].run_id}: {', '.join(asked.keys)}"
            dag_runs.start(DAG_ID, child, run_after=at, conf={CONFIRMS: run.run}, note=note)
    except TipcflowError as error:
        run.note(f"could not start the confirm run: {error}")
        confirm.refuse(run.store, run.run, str(error))
        return None
    run.note(
        f"re-measuring {', '.join(asked.keys)}: the verdict waits for confirm run {asked.run} "
        f"(DAG {DAG_ID}), for at most {asked.until - run.now():.0f} s"
    )
    return child, asked


def ask_early(run: "TaskContext", context: Context) -> None:
    """Request the confirm run and queue for slots while the run still holds its own.

    Otherwise other waiting runs would get the slots first, and a confirm run on a busy cluster could start
    too late.
    """
    from tipcflow.execute.leases.keeper import TASK_WAITER_S
    from tipcflow.execute.resolve.resolve import create_run
    from tipcflow.execute.verdict import judge as judgement

    store = run.store
    if store.plan_or_none(run.run) is None or not store.attempts(run.run):
        return
    judgement.judge_run(store, run.run, rules=run.policy, references=run.references)
    asked = confirm.asked_of(store, run.run) or _ask(run, context)
    if asked is None or not confirm.open_question(store, run.run) or store.known_runs([asked.run]):
        return
    request = confirm.request_for(run.request, store.get_run(run.run), asked, store.now())
    create_run(store, request, asked.run)
    store.queue_for_leases(asked.run, run.slots, owner=run.request.owner, ttl_s=TASK_WAITER_S)


def _ask(run: "TaskContext", context: Context) -> "Asked | None":
    child, at = _free_id(context["dag_run"].dag_id, context["dag_run"].run_id), datetime.now(UTC)
    return confirm.ask(
        run.store,
        run.store.get_run(run.run),
        run.policy,
        run_id_of(DAG_ID, child, at),
        kept={"dag_run_id": child, "run_after": at.isoformat()},
    )


def _free_id(dag_id: str, run_id: str) -> str:
    """Return an unused id for the confirm run; a cleared run gets another one."""
    for number in range(1, _MOST + 1):
        # The DAG id is part of it, because the chains of a weekly run share one run id.
        child = child_run_id(f"{dag_id}.{run_id}", number, word=confirm.TRIGGER)
        if dag_runs.state_of(DAG_ID, child) is None:
            return child
    raise InfraError(f"the run already has {_MOST} confirm runs")
