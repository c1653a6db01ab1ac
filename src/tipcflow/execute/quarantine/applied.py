"""Marks runs with quarantined failures, so that they join no history."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tipcflow.check.quarantine import quarantined
from tipcflow.domain import CheckResult
from tipcflow.domain.run_documents import QuarantinedDocument

if TYPE_CHECKING:
    from tipcflow.store import Store


def note_quarantined(store: "Store", run_id: str, results: Iterable[CheckResult]) -> None:
    """Store which quarantines cover failures of a judged run; a run that is judged again may have none."""
    numbers = quarantined(results)
    if numbers:
        store.documents.put(run_id, QuarantinedDocument(numbers=numbers))
    elif store.documents.get(run_id, QuarantinedDocument):
        store.documents.remove(run_id, QuarantinedDocument)
