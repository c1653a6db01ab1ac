"""Queries and starts other DAG runs over the task SDK's supervisor channel."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tipcflow.domain import ConfigError, InfraError
from tipcflow.domain.run.names import DagId
from tipcflow.execute.sweeps.maintenance import Owner
from tipcflow_operators.airflow.child_runs import ACTIVE_STATES

# Airflow's task states that are not final.
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
    """Return the state of a DAG run (`queued`, `running`, `success`, `failed`), or None if it does not exist."""
    from tipcflow_operators.airflow.internals import RuntimeTaskInstance

    # Count first: reading the state of a missing DAG run raises an error.
    if not RuntimeTaskInstance.get_dr_count(dag_id=dag_id, run_ids=[run_id]):
        return None
    return str(getattr(state := RuntimeTaskInstance.get_dagrun_state(dag_id, run_id), "value", state))


def count_active(dag_id: str) -> int:
    """Return the number of active runs of a DAG."""
    from tipcflow_operators.airflow.internals import RuntimeTaskInstance

    return RuntimeTaskInstance.get_dr_count(dag_id=dag_id, states=sorted(ACTIVE_STATES))


def owner_of(dag_id: str, run_id: str) -> Owner:
    """Return whether a DAG run is active; an ended DAG run with an unfinished task is active too."""
    from tipcflow_operators.airflow.internals import RuntimeTaskInstance

    state = state_of(dag_id, run_id)
    if state is None:
        return Owner.UNKNOWN
    if state in ACTIVE_STATES:
        return Owner.LIVING
    busy = RuntimeTaskInstance.get_ti_count(dag_id=dag_id, run_ids=[run_id], states=_UNFINISHED)
    return Owner.LIVING if busy else Owner.ENDED


def task_states(dag_id: str, run_id: str, task_id: str) -> dict[str, str | None]:
    """Return the states of a mapped task's instances in a DAG run, by `<task id>_<map index>`."""
    from tipcflow_operators.airflow.internals import RuntimeTaskInstance

    states = RuntimeTaskInstance.get_task_states(dag_id=dag_id, task_ids=[task_id], run_ids=[run_id])
    return dict(states.get(run_id, {}))


def start(dag_id: str, run_id: str, *, run_after: datetime, conf: Mapping[str, Any], note: str) -> None:
    """Start a DAG run; do nothing if it exists already.

    Airflow's TriggerDagRunOperator raises DagRunTriggerException instead. That way has no deadline and waits
    forever for a DAG run that a user deletes.

    Raises:
        ConfigError: the DAG does not exist, has import errors, or is paused.
        InfraError: Airflow rejects the request for another reason.
    """
    from airflow.sdk.exceptions import AirflowRuntimeError

    from tipcflow_operators.airflow.internals import SUPERVISOR_COMMS, RuntimeTaskInstance, TriggerDagRun

    try:
        dag = RuntimeTaskInstance.get_dag(dag_id)
    except AirflowRuntimeError as error:
        if (error.error.detail or {}).get("status_code") != _NOT_FOUND:
            raise InfraError(f"cannot read DAG {dag_id} from Airflow: {error}") from error
        raise ConfigError(
            f"Airflow has no DAG {dag_id}",
            hint=f"check that the dag-processor has parsed dags/{_file_of(dag_id)}; see its import errors",
        ) from error
    if dag.is_paused:
        raise ConfigError(f"DAG {dag_id} is paused: its run would never start", hint="unpause it in Airflow")
    request = TriggerDagRun(dag_id=dag_id, run_id=run_id, run_after=run_after, conf=dict(conf), note=note)
    try:
        SUPERVISOR_COMMS.send(request)
    except AirflowRuntimeError as error:
        raise InfraError(f"Airflow could not start DAG {dag_id}: {error}") from error


def _file_of(dag_id: str) -> str:
    suite = DagId.parse(dag_id).suite
    return f"chains_{suite}.py" if suite else f"{dag_id}.py"
