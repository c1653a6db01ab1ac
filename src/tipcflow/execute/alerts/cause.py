"""Alerts with the same cause: a framework build that slows many chains is one group, not many alerts."""

from typing import TYPE_CHECKING

from tipcflow.domain.alert.entry import Alert
from tipcflow.domain.numbers.changes import ChangeKind, read_changes

if TYPE_CHECKING:
    from tipcflow.store import Store

# Chains run at different times; a change of framework or suite reaches all of them within this period.
_PERIOD_S = 14 * 86_400.0
_SUITE = frozenset({ChangeKind.SUITE, ChangeKind.SUITE_CONTENT})


def group_of(store: "Store", alert: Alert) -> int:
    """Return the group of a new alert; 0 if no present alert has the same cause.

    Two alerts have the same cause if the framework build changed alike before both, or the suite commit of one
    suite. Changes of nodes and drivers are suspects, but join no alerts: nodes alternate.
    """
    causes = causes_of(alert)
    if not causes:
        return 0
    alike = [
        each.group
        for each in store.tracked_alerts.present(alert.first_at - _PERIOD_S)
        if causes & causes_of(each) and abs(each.first_at - alert.first_at) <= _PERIOD_S
    ]
    return min(alike, default=0)


def causes_of(alert: Alert) -> frozenset[tuple[str, str]]:
    """Return (suite, change) of its suspects that other alerts may share; suite is '' for the framework."""
    suspects = read_changes(alert.suspects)
    framework = {("", str(suspect)) for suspect in suspects if suspect.kind is ChangeKind.FRAMEWORK}
    suite = {(alert.suite, str(suspect)) for suspect in suspects if suspect.kind in _SUITE}
    return frozenset(framework | suite)
