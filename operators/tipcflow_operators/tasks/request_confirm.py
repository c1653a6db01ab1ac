"""Requests a confirm run: `judge` starts a run of DAG `confirm` and waits for it."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow.sdk import Context

from tipcflow.domain import InfraError, TipcflowError, run_id_of
from tipcflow.domain.numbers.units import rough
from tipcflow.execute.verdict import confirm
from tipcflow_operators.airflow import dag_runs
from tipcflow_operators.airflow.child_runs import child_run_id

if TYPE_CHECKING:
    from tipcflow.domain.run_documents import ConfirmationDocument
    from tipcflow.execute.run.context import TaskContext

# A separate DAG: as runs of the chain's DAG, confirm runs would queue behind runs that wait for them.
DAG_ID = "confirm"
# The only param: the run to confirm.
CONFIRMS = "confirms"
# Upper limit of confirm runs of one run.
_MOST = 20


def pending_confirmation(ctx: "TaskContext", context: Context) -> tuple[str, "ConfirmationDocument"] | None:
    """Return (id of the confirm DAG run, its request) if the run must wait for it; start it if necessary.

    If Airflow rejects the start, the run does not wait: the numbers stay unconfirmed, and checks give the reason.
    """
    confirmation = confirm.confirm_request_of(ctx.store, ctx.run_id)
    if confirmation is None:
        confirmation = _request_confirm(ctx, context)
    elif ctx.policy.confirm_runs > 1:
        _queue(ctx, context)
        confirmation = confirm.confirm_request_of(ctx.store, ctx.run_id)
    if confirmation is None or not confirm.is_awaited(ctx.store, ctx.run_id):
        return None
    if not confirmation.dag_run_id:
        return None
    suspects = ", ".join(map(str, confirmation.keys))
    child, at = confirmation.dag_run_id, datetime.fromisoformat(confirmation.run_after)
    try:
        # Repeated if this task died between the request and the start.
        if dag_runs.state_of(DAG_ID, child) is None:
            dag_run = context["dag_run"]
            note = f"confirms {dag_run.dag_id} {dag_run.run_id}: {suspects}"
            dag_runs.start(DAG_ID, child, run_after=at, conf={CONFIRMS: ctx.run_id}, note=note)
    except TipcflowError as error:
        ctx.note(f"could not start the confirm run: {error}")
        confirm.cancel_request(ctx.store, ctx.run_id, str(error))
        return None
    ctx.note(
        f"re-measuring {suspects}: the verdict waits for confirm run {confirmation.run} "
        f"(DAG {DAG_ID}), for at most {rough(confirmation.until - ctx.now())}"
    )
    return child, confirmation


def further_confirmation(ctx: "TaskContext", context: Context) -> tuple[str, "ConfirmationDocument"] | None:
    """Return the same for a further confirm run after one that ended; None if the checks request none.

    One that ended without a status is not waited for again.
    """
    if ctx.policy.confirm_runs < 2:
        return None
    before = confirm.confirm_request_of(ctx.store, ctx.run_id)
    _queue(ctx, context)
    further = confirm.confirm_request_of(ctx.store, ctx.run_id) != before
    return pending_confirmation(ctx, context) if further else None


def request_early(ctx: "TaskContext", context: Context) -> None:
    """Request the confirm run and queue for slots while the run still holds its own."""
    from tipcflow.execute.verdict import judge as judgement

    store = ctx.store
    if store.plans.get_or_none(ctx.run_id) is None or not store.attempts.of(ctx.run_id):
        return
    judgement.judge_run(store, ctx.run_id, rules=ctx.policy, references=ctx.references)
    _queue(ctx, context)


def _queue(ctx: "TaskContext", context: Context) -> None:
    """Request the next confirm run if one is needed, and queue it for slots."""
    from tipcflow.execute.leases.keeper import TASK_WAITER_S
    from tipcflow.execute.run.confirmation import queue_confirmation

    queue_confirmation(
        ctx.store,
        ctx.run_id,
        ctx.request,
        ctx.slots,
        ttl_s=TASK_WAITER_S,
        send_request=lambda: _request_confirm(ctx, context),
    )


def _request_confirm(ctx: "TaskContext", context: Context) -> "ConfirmationDocument | None":
    child, at = _free_id(context["dag_run"].dag_id, context["dag_run"].run_id), datetime.now(UTC)
    return confirm.request_confirmation(
        ctx.store,
        ctx.store.runs.get(ctx.run_id),
        ctx.policy,
        run_id_of(DAG_ID, child, at),
        dag_run_id=child,
        run_after=at.isoformat(),
    )


def _free_id(dag_id: str, run_id: str) -> str:
    """Return an unused id for the confirm run; a cleared run gets another one."""
    for number in range(1, _MOST + 1):
        # The DAG ID is part of it, because the chains of a weekly run share one run ID.
        child = child_run_id(f"{dag_id}.{run_id}", number, word=confirm.TRIGGER)
        if dag_runs.state_of(DAG_ID, child) is None:
            return child
    raise InfraError(f"the run already has {_MOST} confirm runs")
