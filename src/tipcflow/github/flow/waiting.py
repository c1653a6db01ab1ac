"""Whether work is pending: checked every few seconds, by a few small queries."""

from tipcflow.github.flow.comparisons import comparison_acts, living_comparisons
from tipcflow.github.flow.observe import certified, digest
from tipcflow.store import Store
from tipcflow.store.github.attempts import NEW, PullAttempt


def work_waits(store: Store) -> bool:
    """Whether a delivery, a changed run, an end without a report, a comparison or a message waits."""
    if store.outbox.ready() or store.messages.due() or store.pulls.unreported():
        return True
    living, comparisons = store.pulls.living(), living_comparisons(store)
    now = store.now() if living or comparisons else 0.0
    if any(comparison_acts(store, body, now) for _, body in comparisons):
        return True
    return any(acts(attempt, now) or changed(store, attempt) for attempt in living)


def acts(attempt: PullAttempt, now: float) -> bool:
    """Whether DAG runs of an attempt are to be started or stopped now."""
    if attempt.state == NEW:
        return bool(attempt.cancel) or due(attempt, now)
    return bool(attempt.cancel) and not attempt.body.stopped and due(attempt, now)


def due(attempt: PullAttempt, now: float) -> bool:
    """Whether a failed start or stop may be repeated."""
    return attempt.body.retry_at <= now


def changed(store: Store, attempt: PullAttempt) -> bool:
    """Whether the report of an attempt is out of date."""
    return digest(attempt, certified(store, attempt).chains) != attempt.observed
