"""DAG runs of `certify` that a task has started, as Airflow and the metrics database describe them."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from tipcflow.domain import Run, Status, run_id_of
from tipcflow.domain.run_documents import AirflowDocument
from tipcflow_operators.airflow import dag_runs
from tipcflow_operators.airflow.child_runs import ACTIVE_STATES

if TYPE_CHECKING:
    from tipcflow.store import Store

DAG_ID = "certify"


@dataclass(frozen=True)
class ChildRun:
    """A DAG run that exists.

    Attributes:
        is_active: whether it has not ended.
        run: its run as of its end; None while it is active.
    """

    is_active: bool
    run: Run | None = None


def _is_announced(store: "Store", run: Run) -> bool:
    """Whether a run exists only because it gets the leases of another run."""
    return run.status is None and store.documents.get(run.id, AirflowDocument) is None


def find_run(store: "Store", child: str, run_after: datetime) -> ChildRun | None:
    """Return the DAG run of `certify` with that ID, None without one; one that ended without a status was broken.

    Args:
        run_after: its date.
    """
    ours = run_id_of(DAG_ID, child, run_after)
    run = store.runs.known([ours]).get(ours)
    state = dag_runs.state_of(DAG_ID, child)
    if state in ACTIVE_STATES:
        return ChildRun(is_active=True)
    if state is None and (run is None or _is_announced(store, run)):
        return None
    if run is not None and run.status is not None:
        return ChildRun(is_active=False, run=run)
    reason = f"DAG run {child} of {DAG_ID} ended (Airflow: {state or 'deleted'}) without a tipcflow status"
    if run is None:
        now = store.now()
        run = Run(id=ours, chain="", suite="", model="", mode="", cluster="", created_at=now, ended_at=now)
    return ChildRun(is_active=False, run=run.model_copy(update={"status": Status.INFRA_FAILURE, "reason": reason}))
