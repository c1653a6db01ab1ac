"""Whether a user has stopped a DAG run, told from a task that died.

Airflow marks a DAG run that a user stops only after its last teardown: until then the states of its tasks tell.
Running and deferred tasks become `failed` like a task that died, but what comes after a task that died becomes
`upstream_failed` or runs, while every task that had not begun becomes `skipped`.
"""

import re
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from operators.tasks.groups import steps_of
from tipcflow.domain import StepKind

if TYPE_CHECKING:
    from tipcflow.execute.run.context import TaskContext

RESOLVE = "resolve"
_SKIPPED = "skipped"


def was_stopped(context: Context) -> bool:
    """Whether a person has marked the DAG run: it has a final state while its teardowns still run."""
    dag_run = context["dag_run"]
    return bool(context["ti"].get_dagrun_state(dag_run.dag_id, dag_run.run_id) in ("failed", "success"))


def stopped_by_user(run: "TaskContext", context: Context) -> bool:
    """Whether a user has marked the DAG run, also while it has no final state yet.

    A step task that skips itself gives all its steps a status, or has none. A skipped one that left a step without
    a status and without an attempt was skipped by Airflow for the user.
    """
    if was_stopped(context):
        return True
    dag_run = context["dag_run"]
    told = context["ti"].get_task_states(dag_id=dag_run.dag_id, run_ids=[dag_run.run_id])
    states = {str(name): getattr(state, "value", state) for name, state in told.get(dag_run.run_id, {}).items()}
    plan = run.store.plan_or_none(run.run)
    if plan is None:
        return states.get(RESOLVE) == _SKIPPED
    begun = set(run.statuses()) | {one.step for one in run.store.attempts(run.run)}
    for task in context["dag"].tasks:
        kind = _argument(task, "kind")
        if kind is None or not _all_skipped(states, task.task_id):
            continue
        steps = steps_of(plan, StepKind(kind), _argument(task, "group") or 0, _argument(task, "variants") or ())
        if any(step.id not in begun for step in steps):
            return True
    return False


def _argument(task: Any, name: str) -> Any:
    """What a step task was made with; a mapped one keeps that until it is expanded."""
    mapped = getattr(task, "partial_kwargs", None)
    return getattr(task, name, None) if mapped is None else mapped.get(name)


def _all_skipped(states: dict[str, Any], task_id: str) -> bool:
    """Whether all instances of a task are skipped. One node's instance of a mapped task may skip itself."""
    own = re.compile(re.escape(task_id) + r"(_\d+)?")
    mine = [state for name, state in states.items() if own.fullmatch(name)]
    return bool(mine) and set(mine) == {_SKIPPED}
