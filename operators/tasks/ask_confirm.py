"""A run that is confirmed: its judge starts a DAG run of the DAG `confirm`, and waits for it."""

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

# A DAG of its own: as runs of the chain, confirm runs would wait behind runs that wait for confirm runs.
DAG_ID = "confirm"
# Its only param: the run that it confirms.
CONFIRMS = "confirms"
# More often than that nobody clears a run whose confirm run had begun.
_MOST = 20


def waited_for(run: "TaskContext", context: Context) -> tuple[str, "Asked"] | None:
    """(id of the confirm DAG run, what was asked) while it is to be waited for; it is started when it was not.

    One that Airflow refuses to start is not waited for: the numbers stay in doubt, and the checks say why.
    """
    asked = confirm.asked_of(run.store, run.run) or _ask(run, context)
    if asked is None or not confirm.open_question(run.store, run.run):
        return None
    kept = run.store.document(run.run, confirm.DOCUMENT) or {}
    if not asked.dag_run_id:
        return None
    child, at = asked.dag_run_id, datetime.fromisoformat(kept["run_after"])
    try:
        # Also when this task died between asking and starting.
        if dag_runs.state_of(DAG_ID, child) is None:
            note = f"confirms {context['dag_run'].dag_id} {context['dag_run'].run_id}: {', '.join(asked.keys)}"
            dag_runs.start(DAG_ID, child, run_after=at, conf={CONFIRMS: run.run}, note=note)
    except TipcflowError as error:
        run.note(f"the confirm run could not be started: {error}")
        confirm.refuse(run.store, run.run, str(error))
        return None
    run.note(
        f"measuring once more: {', '.join(asked.keys)}; the run has no status until confirm run {asked.run} "
        f"(DAG {DAG_ID}) has ended, for at most {asked.until - run.now():.0f} s"
    )
    return child, asked


def ask_early(run: "TaskContext", context: Context) -> None:
    """Ask while the run still has its slots, and queue for them: who waits for slots now would have them first.

    Else a confirm run on a busy cluster begins when another run has ended, and may be too late then.
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
    """An id for the confirm run: another one when the run was cleared and is confirmed again."""
    for number in range(1, _MOST + 1):
        # With the DAG's: the chains of a weekly run have the same run id.
        child = child_run_id(f"{dag_id}.{run_id}", number, word=confirm.TRIGGER)
        if dag_runs.state_of(DAG_ID, child) is None:
            return child
    raise InfraError(f"the run was confirmed {_MOST} times already")
