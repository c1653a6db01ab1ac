"""Allocations whose runs have ended: their controllers died before they could end them."""

from typing import TYPE_CHECKING

from tipcflow.domain import Cluster, InfraError
from tipcflow.execute.allocation.client import SlurmClient
from tipcflow.execute.allocation.hold import run_of
from tipcflow.execute.node.link import Connect

if TYPE_CHECKING:
    from tipcflow.store import Store


def end_leftovers(store: "Store", cluster: Cluster, connect: Connect, *, run: str = "") -> list[str]:
    """End the user's allocations of runs that have a status; return a line about each allocation.

    Args:
        run: only this run, whether or not it has a status; '' for all runs of the database.

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
            else:
                lines.append(_end(client, job.id, name))
    return lines


def _end(client: SlurmClient, job: str, run: str) -> str:
    try:
        client.cancel_job(job)
    except InfraError as error:
        return f"run {run}: Slurm job {job} could not be ended: {error.message}"
    return f"run {run}: Slurm job {job} was ended"
