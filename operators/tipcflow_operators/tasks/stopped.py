"""Distinguishes a DAG run stopped by a user from one with a dead task.

Airflow marks a DAG run that a user stops only after its last teardown; until then the task states show it. Running
and deferred tasks become `failed` in both cases. Downstream of a dead task, tasks become `upstream_failed` or run;
after a stop by a user, every task that had not started becomes `skipped`.
"""

import re
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from tipcflow.domain import StepKind
from tipcflow.domain.run_documents import AirflowDocument
from tipcflow_operators.airflow.events import Log
from tipcflow_operators.airflow.internals import argument_of
from tipcflow_operators.tasks.groups import steps_of

if TYPE_CHECKING:
    from tipcflow.execute.run.context import TaskContext

RESOLVE = "resolve"
_SKIPPED = "skipped"
_LOOKUP_S = 15.0


def was_stopped(context: Context) -> bool:
    """Whether a user has marked the DAG run: it has a final state while its teardowns are still running."""
    dag_run = context["dag_run"]
    return bool(context["ti"].get_dagrun_state(dag_run.dag_id, dag_run.run_id) in ("failed", "success"))


def stopped_by_user(ctx: "TaskContext", context: Context) -> bool:
    """Whether a user has marked the DAG run, even if it has no final state yet.

    A step task that skips itself has given all its steps a status, or has no steps. A skipped task with a step
    that has neither status nor attempt was skipped by Airflow on behalf of the user.
    """
    if was_stopped(context):
        return True
    dag_run = context["dag_run"]
    task_states = context["ti"].get_task_states(dag_id=dag_run.dag_id, run_ids=[dag_run.run_id])
    states = {
        str(name): getattr(state, "value", state) for name, state in task_states.get(dag_run.run_id, {}).items()
    }
    plan = ctx.store.plans.get_or_none(ctx.run_id)
    if plan is None:
        return states.get(RESOLVE) == _SKIPPED
    begun = set(ctx.statuses()) | {attempt.step for attempt in ctx.store.attempts.of(ctx.run_id)}
    for task in context["dag"].tasks:
        kind = argument_of(task, "kind")
        if kind is None or not _all_skipped(states, task.task_id):
            continue
        steps = steps_of(
            plan, StepKind(kind), argument_of(task, "group") or 0, argument_of(task, "variants") or ()
        )
        if any(step.id not in begun for step in steps):
            return True
    return False


def note_stop(ctx: "TaskContext", context: Context, log: Log) -> bool:
    """Whether a user has marked the DAG run; stores the user's name, because Airflow's log is not kept."""
    stopped = stopped_by_user(ctx, context)
    user = stopping_user(context, log) if stopped else ""
    known = ctx.store.documents.get(ctx.run_id, AirflowDocument)
    if known is not None and known.stopped_by != user:
        ctx.store.documents.change(ctx.run_id, AirflowDocument, stopped_by=user)
    return stopped


def stopping_user(context: Context, log: Log) -> str:
    """Return who has marked the DAG run; '' without an API connection, and if Airflow's log has no user."""
    from tipcflow_operators.airflow.api import api

    dag_run = context["dag_run"]
    try:
        client = api()
        if client is None:
            return ""
        with client:
            return client.stopped_by(dag_run.dag_id, dag_run.run_id, deadline_s=_LOOKUP_S)
    except Exception as error:
        # The name is a detail: nothing may prevent that the steps get their status.
        log.warning("could not read who has stopped the run: %s", error)
        return ""


def _all_skipped(states: dict[str, Any], task_id: str) -> bool:
    """Whether all instances of a task are skipped; single instances of a mapped task may skip themselves."""
    own = re.compile(re.escape(task_id) + r"(_\d+)?")
    own_states = [state for name, state in states.items() if own.fullmatch(name)]
    return bool(own_states) and set(own_states) == {_SKIPPED}
