"""Attaches the result of a bisection to the run in which a regression or failure began, and to its alert."""

from typing import TYPE_CHECKING

from tipcflow.domain.alert.entry import TIPCFLOW, AlertEvent, EventKind
from tipcflow.domain.run.bisection import BisectionDocument

if TYPE_CHECKING:
    from tipcflow.store import Store


def attach_bisection(store: "Store", run: str, result: BisectionDocument) -> list[int]:
    """Store a result; return the numbers of the alerts that got it.

    A repetition replaces the stored result, and changes no alert that has the same sentence.

    Args:
        run: the first bad run.
    """
    store.documents.put(run, result)
    alerts = [alert for alert in store.tracked_alerts.of_run(run) if alert.first == run]
    for alert in alerts:
        known = store.tracked_alerts.events(alert.number)
        if any(event.kind is EventKind.BISECTED and event.text == result.sentence for event in known):
            continue
        event = AlertEvent(
            alert=alert.number, at=store.now(), who=TIPCFLOW, kind=EventKind.BISECTED, text=result.sentence
        )
        store.tracked_alerts.change(event)
    return [alert.number for alert in alerts]
