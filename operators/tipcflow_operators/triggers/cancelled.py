"""Why Airflow ends a process or a trigger of a task: a user has ended the task, or it continues elsewhere."""

import asyncio
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger

from tipcflow_operators.airflow.internals import RuntimeTaskInstance
from tipcflow_operators.triggers.waits import STATE_S

if TYPE_CHECKING:
    from logging import Logger

    from structlog.typing import FilteringBoundLogger

# Marked as failed, success or skipped, removed from its DAG, or cleared.
_ENDED = frozenset({"failed", "success", "skipped", "upstream_failed", "removed", "restarting"})


def is_ended_by_user(task: Any, log: "Logger | FilteringBoundLogger") -> bool:
    """Whether a user has ended the task of which Airflow ends a process or a trigger. If the state of the task
    cannot be read: no; then the task `release` or the next attempt ends what is left.

    Airflow calls `on_kill` not only for users (airflow 3.3):

    - of a trigger, if a triggerer had no heartbeat for `[triggerer] triggerer_health_check_threshold` seconds:
      another one has taken over its triggers (`TriggererJobRunner.update_triggers`);
    - of a task, if its worker is shut down, as on Kubernetes (`ActivitySubprocess.wait`); if `[workers]
      max_failed_heartbeats` heartbeats fail, because the api-server is away; and when a worker continues that was
      unresponsive for `[scheduler] task_instance_heartbeat_timeout` seconds: the retry runs elsewhere.

    In these cases the task is still deferred or running, or it waits for its retry.

    Args:
        task: the task instance (names and map index).
    """
    try:
        states = RuntimeTaskInstance.get_task_states(
            dag_id=task.dag_id, task_ids=[task.task_id], run_ids=[task.run_id], map_index=task.map_index
        )
    except Exception as error:
        log.warning("cannot read the state of task %s: %r; what it runs is not stopped", task.task_id, error)
        return False
    own = list(states.get(task.run_id, {}).values())
    state = own[0] if own else "removed"
    if state is None or state in _ENDED:
        return True
    log.info("task %s is %s: no user has ended it, nothing is stopped", task.task_id, state)
    return False


async def is_by_user(trigger: BaseTrigger) -> bool:
    """Whether a user has ended the trigger's task (`is_ended_by_user`)."""
    task = trigger.task_instance
    if task is None:
        return True
    try:
        return await asyncio.wait_for(asyncio.to_thread(is_ended_by_user, task, trigger.log), STATE_S)
    except TimeoutError:
        trigger.log.warning("no state of task %s within %g s; what it runs is not stopped", task.task_id, STATE_S)
        return False
