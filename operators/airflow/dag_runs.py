"""What a task asks and tells Airflow about other DAG runs, over the channel that every task and trigger has."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from operators.airflow.child_runs import LIVING
from tipcflow.domain import ConfigError, InfraError
from tipcflow.execute.sweeps.maintenance import Owner

# Airflow's states of tasks of which something is still to come.
_UNFINISHED = [
    "scheduled",
    "queued",
    "running",
    "restarting",
    "up_for_retry",
    "up_for_reschedule",
    "deferred",
    "awaiting_input",
]
_NOT_FOUND = 404


def state_of(dag_id: str, run_id: str) -> str | None:
    """The state of a DAG run (`queued`, `running`, `success`, `failed`), None when there is no such one."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    # Counting first: the state of what is not there would be an error.
    if not RuntimeTaskInstance.get_dr_count(dag_id=dag_id, run_ids=[run_id]):
        return None
    return str(getattr(state := RuntimeTaskInstance.get_dagrun_state(dag_id, run_id), "value", state))


def owner_of(dag_id: str, run_id: str) -> Owner:
    """Whether anything of a DAG run may still happen: also of one that has ended, while a task of it has not."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    state = state_of(dag_id, run_id)
    if state is None:
        return Owner.UNKNOWN
    if state in LIVING:
        return Owner.LIVING
    busy = RuntimeTaskInstance.get_ti_count(dag_id=dag_id, run_ids=[run_id], states=_UNFINISHED)
    return Owner.LIVING if busy else Owner.ENDED


def task_states(dag_id: str, run_id: str, task_id: str) -> dict[str, str | None]:
    """The states of a mapped task's instances in a DAG run, by `<task id>_<map index>`."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    states = RuntimeTaskInstance.get_task_states(dag_id=dag_id, task_ids=[task_id], run_ids=[run_id])
    return dict(states.get(run_id, {}))


def start(dag_id: str, run_id: str, *, run_after: datetime, conf: Mapping[str, Any], note: str) -> None:
    """Start a DAG run; one that is there already is left as it is.

    Not by raising DagRunTriggerException, as Airflow's own operator does: what waits then has no deadline, and
    waits for ever for a DAG run that somebody deletes.

    Raises:
        ConfigError: Airflow does not know the DAG, cannot read it, or it is paused.
        InfraError: Airflow refuses for another reason.
    """
    from airflow.sdk.exceptions import AirflowRuntimeError
    from airflow.sdk.execution_time.comms import TriggerDagRun
    from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS, RuntimeTaskInstance

    try:
        dag = RuntimeTaskInstance.get_dag(dag_id)
    except AirflowRuntimeError as error:
        if (error.error.detail or {}).get("status_code") != _NOT_FOUND:
            raise InfraError(f"Airflow does not tell about {dag_id}: {error}") from error
        raise ConfigError(
            f"Airflow has no DAG {dag_id}",
            hint=f"has its dag-processor read dags/{_file_of(dag_id)}? See its import errors",
        ) from error
    if dag.is_paused:
        raise ConfigError(f"the DAG {dag_id} is paused: its run would never begin", hint="unpause it in Airflow")
    asked = TriggerDagRun(dag_id=dag_id, run_id=run_id, run_after=run_after, conf=dict(conf), note=note)
    try:
        SUPERVISOR_COMMS.send(asked)
    except AirflowRuntimeError as error:
        raise InfraError(f"Airflow does not start {dag_id}: {error}") from error


def _file_of(dag_id: str) -> str:
    suite, dot, _ = dag_id.partition(".")
    return f"chains_{suite}.py" if dot else f"{dag_id}.py"
