"""Requests confirm runs without a gap in which a waiting run gets the slots."""

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

    The first one queues while the confirmed run holds the slots: otherwise a waiting run would get them first, and
    on a busy cluster the confirmation would start after that run, possibly too late. A further one gets the place
    that the last one kept when it released its slots (`confirm.may_be_followed`).

    Args:
        request: the request of the judged run.
        ttl_s: lifetime of the queue entry without renewal, seconds.
        send_request: requests the confirm run if the check results need one (`confirm.request_confirmation`).
    """
    before = confirm.confirm_request_of(store, run_id)
    confirmation = send_request() or before
    awaited = confirm.is_awaited(store, run_id)
    if before is not None and not awaited:
        store.queue.leave(before.run)  # none follows it
    if confirmation is None or not awaited or store.runs.known([confirmation.run]):
        return None
    child = confirm.request_for(request, store.runs.get(run_id), confirmation, store.now())
    create_run(store, child, confirmation.run)
    last = confirmation.earlier[-1:]
    kept = bool(last) and store.queue.pass_on(last[0], confirmation.run, ttl_s=ttl_s)
    if slots and not kept:  # Slurm queues the runs of its clusters
        store.queue.join(confirmation.run, slots, owner=request.owner, ttl_s=ttl_s)
    return confirmation, child
