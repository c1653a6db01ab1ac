"""Why Airflow has cancelled a trigger: a user has ended its task, or another triggerer has the trigger now."""

import asyncio

from airflow.triggers.base import BaseTrigger

from tipcflow_operators.airflow.ended import is_ended_by_user
from tipcflow_operators.triggers.waits import STATE_S


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
