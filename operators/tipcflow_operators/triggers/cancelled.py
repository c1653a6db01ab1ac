"""Why Airflow has cancelled a trigger: a user has ended its task, or another triggerer has the trigger now."""

import asyncio

from airflow.triggers.base import BaseTrigger

from tipcflow_operators.airflow.internals import RuntimeTaskInstance
from tipcflow_operators.triggers.waits import STATE_S

# Marked as failed, success or skipped, removed from its DAG, or cleared.
_ENDED = frozenset({"failed", "success", "skipped", "upstream_failed", "removed", "restarting"})


async def is_by_user(trigger: BaseTrigger) -> bool:
    """Whether a user has ended the trigger's task. If its state cannot be read: no; then the task `release` or
    the next attempt ends what is left.

    Airflow calls `on_kill` of each trigger that a triggerer has to give up. A triggerer without a heartbeat for
    `[triggerer] triggerer_health_check_threshold` seconds also gives up triggers that another one has taken over
    (airflow 3.3, `TriggererJobRunner.update_triggers`). Their tasks are still deferred, or they continue because
    the triggers have fired there.
    """
    task = trigger.task_instance
    if task is None:
        return True
    try:
        states = await asyncio.wait_for(
            asyncio.to_thread(
                RuntimeTaskInstance.get_task_states,
                dag_id=task.dag_id,
                task_ids=[task.task_id],
                run_ids=[task.run_id],
                map_index=task.map_index,
            ),
            STATE_S,
        )
    except Exception as error:
        trigger.log.warning(
            "cannot read the state of task %s: %r; what it runs is not stopped", task.task_id, error
        )
        return False
    own = list(states.get(task.run_id, {}).values())
    state = own[0] if own else "removed"
    if state is None or state in _ENDED:
        return True
    trigger.log.info("task %s is %s: another triggerer has its trigger, nothing is stopped", task.task_id, state)
    return False
