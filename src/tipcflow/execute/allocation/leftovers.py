"""Allocations whose runs have ended: their controllers died before they could end them."""

from typing import TYPE_CHECKING

from tipcflow.domain import Cluster, InfraError
from tipcflow.domain.run_documents import AirflowDocument
from tipcflow.execute.allocation.client import SlurmClient
from tipcflow.execute.allocation.document import HolderDocument
from tipcflow.execute.allocation.names import run_of
from tipcflow.execute.node.link import Connect

if TYPE_CHECKING:
    from tipcflow.store import Store


def end_leftovers(store: "Store", cluster: Cluster, connect: Connect, *, run: str = "") -> list[str]:
    """End the user's allocations of runs that have a status; return a line about each allocation.

    Args:
        run: only this run, also if the database does not know it, and without a status if its `tipcflow run` does
            not run any more; '' for all runs of the database.

    Raises:
        InfraError: Slurm does not respond.
    """
    lines = []
    with SlurmClient(cluster, connect) as client:
        for job in client.own():
            name = run_of(job.name)
            if not name or run not in ("", name):
                continue
            stored = store.runs.known([name]).get(name)
            if run != name and stored is None:
                lines.append(f"run {name}: Slurm job {job.id} is unknown to this database; skipped")
            elif run != name and stored is not None and stored.status is None:
                continue  # its controller ends it
            elif stored is not None and stored.status is None and (why := _in_use(store, name)):
                lines.append(f"run {name}: Slurm job {job.id} {why}. Without a controller: scancel {job.id}")
            else:
                lines.append(_end(client, job.id, name))
    return lines


def _in_use(store: "Store", run: str) -> str:
    """Return why the allocation of a run without a status is left alone; '' if its controller was killed."""
    if (airflow := store.documents.get(run, AirflowDocument)) is not None:
        return f"belongs to an active run; skipped: mark DAG run {airflow.run_id} of {airflow.dag_id} as failed"
    holder = store.documents.get(run, HolderDocument)
    if holder is None:  # of an earlier version
        return "belongs to a run without a status; skipped: stop its `tipcflow run`"
    if holder.until < store.now():
        return ""
    return f"is in use by {holder.owner or 'its `tipcflow run`'}; skipped: stop that `tipcflow run`"


def _end(client: SlurmClient, job: str, run: str) -> str:
    try:
        client.cancel_job(job)
    except InfraError as error:
        return f"run {run}: Slurm job {job} could not be ended: {error.message}"
    return f"run {run}: Slurm job {job} was ended"
