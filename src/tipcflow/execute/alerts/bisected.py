"""Attaches the result of a bisection to the run in which a regression or failure began, and to its alert."""

from typing import TYPE_CHECKING

from tipcflow.domain.alert.entry import TIPCFLOW, Alert, AlertEvent, EventKind
from tipcflow.domain.run.bisection import BisectionDocument
from tipcflow.execute.bisection.subject import Subject

if TYPE_CHECKING:
    from tipcflow.store import Store


def attach_bisection(store: "Store", run: str, result: BisectionDocument, *, who: str = TIPCFLOW) -> list[int]:
    """Store a result; return the numbers of the alerts that got it: those about its chain, mode and metric.

    A repetition replaces the stored result, and changes no alert that has the same sentence. A result without the
    required probability does not replace that of another search which has it.

    Args:
        run: the first bad run.
        who: user who requested the search.
    """
    known = store.documents.get(run, BisectionDocument)
    if known is None or result.is_certain or not known.is_certain or known.dag_run == result.dag_run:
        store.documents.put(run, result)
    alerts = [
        alert for alert in store.tracked_alerts.of_run(run) if alert.first == run and _concerns(result, alert)
    ]
    for alert in alerts:
        events = store.tracked_alerts.events(alert.number)
        if any(event.kind is EventKind.BISECTED and event.text == result.sentence for event in events):
            continue
        event = AlertEvent(
            alert=alert.number, at=store.now(), who=who, kind=EventKind.BISECTED, text=result.sentence
        )
        store.tracked_alerts.change(event)
    return [alert.number for alert in alerts]


def _concerns(result: BisectionDocument, alert: Alert) -> bool:
    subject = Subject(
        result.chain or alert.chain, result.mode or alert.mode, "", result.metric, result.step, result.leg
    )
    same_line = (subject.chain, subject.mode) == (alert.chain, alert.mode)
    return same_line and any(subject.matches(*moved.id) for moved in alert.metrics)
