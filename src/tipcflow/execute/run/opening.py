"""Opens a run in Airflow: its row, the DAG run that owns it, its plan."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain import ConfigError, Plan, Status, TipcflowError
from tipcflow.domain.run_documents import AirflowDocument, JudgementDocument
from tipcflow.execute.request import RunRequest
from tipcflow.execute.resolve.resolve import create_run, fields_of, resolve
from tipcflow.execute.verdict import confirm
from tipcflow.execute.verdict.conclusion import stopped_by

if TYPE_CHECKING:
    from tipcflow.store import Store


def open_run(store: "Store", run_id: str, request: RunRequest, *, dag_run: AirflowDocument | None = None) -> bool:
    """Create the run's row, or reopen it after its tasks were cleared; return whether it is new.

    A row that another run made to hand over its leases gets the fields of this request.

    Args:
        dag_run: the DAG run that executes the run; None: it is stored already.

    Raises:
        ConfigError: the run belongs to another DAG run; nothing of it was changed.
    """
    is_new = store.runs.get_or_none(run_id) is None
    if is_new:
        create_run(store, request, run_id)
    if dag_run is not None:
        was_announced = not is_new and store.documents.get(run_id, AirflowDocument) is None
        refuse_other_dag_run(run_id, store.documents.add(run_id, dag_run), dag_run)
        if was_announced and not store.attempts.of(run_id):
            store.runs.update(run_id, **fields_of(request))
    if not is_new:
        restart_run(store, run_id)
        if dag_run is not None:
            store.documents.put(run_id, dag_run)
    return is_new


def refuse_other_dag_run(run_id: str, stored: AirflowDocument, own: AirflowDocument) -> None:
    """Refuse a run that belongs to another DAG run.

    Raises:
        ConfigError: the DAG runs differ.
    """
    if (stored.dag_id, stored.run_id) != (own.dag_id, own.run_id):
        raise ConfigError(
            f"run {run_id} belongs to another DAG run",
            key="dag_run_id",
            found=own.run_id[:80],
            expected=f"{stored.run_id[:80]} of {stored.dag_id}",
            hint="start a DAG run with another ID",
        )


def restart_run(store: "Store", run_id: str) -> None:
    """Reset the statuses of a run and its steps: its first tasks run again, and all tasks after them."""
    store.documents.remove(run_id, JudgementDocument)
    confirm.drop_request(store, run_id)
    if store.runs.get(run_id).status is not None:
        store.runs.reopen(run_id)
    plan = store.plans.get_or_none(run_id)
    if plan is not None:
        store.steps.clear(run_id, [step.id for step in plan.steps])


def resolve_run(store: "Store", run_id: str, request: RunRequest, *, home: Path) -> Plan:
    """Read and check everything, and store the plan. A run that has started keeps its plan.

    Raises:
        ConfigError, InfraError: the run has its status and reason.
    """
    open_run(store, run_id, request)
    if store.attempts.of(run_id):
        return store.plans.get(run_id)
    try:
        _, plan = resolve(store, request, run_id, home=home)
    except TipcflowError as error:
        store.runs.finish(run_id, error.status, str(error), time.time())
        raise
    return plan


def cancel_unresolved(store: "Store", run_id: str, request: RunRequest, *, user: str = "") -> None:
    """Store a run that a user stopped before its first task: waiting clients find it `cancelled`.

    Args:
        user: who stopped the run, '' if unknown.
    """
    create_run(store, request, run_id)
    reason = f"{stopped_by(user)} before its first task"
    store.runs.finish(run_id, Status.CANCELLED, reason, time.time())
