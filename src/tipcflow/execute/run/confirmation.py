"""Requests a run's confirm run while the run still holds its slots."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tipcflow.domain.run_documents import ConfirmationDocument
from tipcflow.execute.request import RunRequest
from tipcflow.execute.resolve.resolve import create_run
from tipcflow.execute.verdict import confirm

if TYPE_CHECKING:
    from tipcflow.store import Store


def queue_confirmation(
    store: "Store",
    run_id: str,
    request: RunRequest,
    slots: Sequence[tuple[str, int]],
    *,
    ttl_s: float,
    send_request: Callable[[], ConfirmationDocument | None],
) -> tuple[ConfirmationDocument, RunRequest] | None:
    """Create the confirm run of a judged run and queue it for the run's slots; None if none is needed, or if
    it exists already.

    It queues while the confirmed run holds the slots: otherwise a waiting run would get them first, and on a busy
    cluster the confirmation would start after that run, possibly too late.

    Args:
        request: the request of the judged run.
        ttl_s: lifetime of the queue entry without renewal, seconds.
        send_request: requests the confirm run if the check results need one (`confirm.request_confirmation`).
    """
    confirmation = send_request() or confirm.confirm_request_of(store, run_id)
    if confirmation is None or not confirm.is_awaited(store, run_id) or store.runs.known([confirmation.run]):
        return None
    child = confirm.request_for(request, store.runs.get(run_id), confirmation, store.now())
    create_run(store, child, confirmation.run)
    if slots:  # Slurm queues the runs of its clusters
        store.queue.join(confirmation.run, slots, owner=request.owner, ttl_s=ttl_s)
    return confirmation, child
