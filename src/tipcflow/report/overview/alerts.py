"""Alerts: regressions with their metrics, suspects, owner and state, grouped by cause."""

from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from tipcflow.domain.alert.entry import OPEN_STATES, Alert, AlertEvent, AlertState
from tipcflow.domain.numbers.units import counted
from tipcflow.domain.run.bisection import BisectionDocument

# Filters that combine several states.
OPEN, EVERY = "open", "all"
STATES = (OPEN, *(state.value for state in AlertState), EVERY)


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class AlertGroup(_Model):
    """Alerts with one cause.

    Attributes:
        number: of the first alert of the group, which may not be listed.
        title: what changed, as text, or the chain of the only alert.
        alerts: the listed ones, the newest first.
    """

    number: int
    title: str
    alerts: tuple[Alert, ...]


class Alerts(_Model):
    """Everything that the page and the command show.

    Attributes:
        at: time of the query, seconds since the epoch.
        groups: open ones first, then by the newest report.
    """

    schema_version: int = 1
    at: float
    sentence: str
    groups: tuple[AlertGroup, ...]

    @property
    def rows(self) -> tuple[Alert, ...]:
        """All alerts, in the order of their groups."""
        return tuple(alert for group in self.groups for alert in group.alerts)


class AlertDetail(_Model):
    """One alert.

    Attributes:
        events: its history, oldest first.
        others: the other alerts of its group, newest first.
        search: the command that searches the commit or build; '' if nothing is known to have changed.
        issues: repository on GitHub -> address of the issue about the cause.
        bisection: the result of the bisection of this alert, or of another alert of its group; None without one.
    """

    schema_version: int = 1
    alert: Alert
    events: tuple[AlertEvent, ...]
    others: tuple[Alert, ...] = ()
    search: str = ""
    issues: dict[str, str] = {}
    bisection: BisectionDocument | None = None


def states_of(name: str) -> tuple[AlertState, ...]:
    """Return the states that a filter includes."""
    if name == OPEN:
        return OPEN_STATES
    return tuple(AlertState) if name == EVERY else (AlertState(name),)


def make_alerts(alerts: Sequence[Alert], *, at: float) -> Alerts:
    """Group alerts.

    Args:
        alerts: newest first.
        at: time of the query, seconds since the epoch.
    """
    members: dict[int, list[Alert]] = {}
    for alert in alerts:
        members.setdefault(alert.group, []).append(alert)
    groups = [
        AlertGroup(number=number, title=_title(listed), alerts=tuple(listed)) for number, listed in members.items()
    ]
    groups.sort(key=lambda group: (not _has_open(group.alerts), -max(each.newest_at for each in group.alerts)))
    return Alerts(at=at, sentence=_sentence(alerts, len(groups)), groups=tuple(groups))


def shared_changes(alerts: Sequence[Alert]) -> list[str]:
    """Return the suspects that all alerts share; without one, those of the oldest.

    Args:
        alerts: at least one.
    """
    oldest = min(alerts, key=lambda alert: alert.number)
    shared = [change for change in oldest.suspects if all(change in alert.suspects for alert in alerts)]
    return shared or list(oldest.suspects)


def _has_open(alerts: Iterable[Alert]) -> bool:
    return any(alert.is_open for alert in alerts)


def _title(alerts: Sequence[Alert]) -> str:
    return ", ".join(shared_changes(alerts)) or "no known change"


def _sentence(alerts: Sequence[Alert], causes: int) -> str:
    if not alerts:
        return "no alerts"
    counts = Counter(alert.state for alert in alerts)
    states = ", ".join(f"{counts[state]} {state.value}" for state in AlertState if counts[state])
    chains = counted(len({alert.chain for alert in alerts}), "chain")
    return f"{counted(len(alerts), 'alert')} of {chains} with {counted(causes, 'cause')}: {states}"
