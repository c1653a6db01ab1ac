"""Alerts of which a team has not been notified: opened, reopened or ended since the last message."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.config.teams.team import Team
from tipcflow.domain.alert.entry import Alert, AlertEvent, AlertState, EventKind
from tipcflow.domain.run.notices import AlertNoticesDocument, AlertNotified, NoticesDocument
from tipcflow.report.notices.alerts import AlertNews, NewsKind
from tipcflow.report.overview.today import DAY_S

if TYPE_CHECKING:
    from tipcflow.store import Store

# An alert that opened or reopened earlier is not reported to a new team, as for other problems.
NEW_S = 7 * DAY_S
# Ordinal of the event that opened an alert.
_FIRST = 1
# The kind of problems, in a team's file, that includes alerts.
REGRESSION = "regression"


@dataclass(frozen=True)
class Tracked:
    """The alerts of a pass.

    Attributes:
        alerts: number -> alert that opened or reopened lately, or whose end may be due.
        openings: number -> the newest event that opened or reopened it lately.
        notices: first run of an alert -> the teams that were notified about the alert.
        problems: run -> the teams that were notified about the problem that the run began.
    """

    alerts: Mapping[int, Alert]
    openings: Mapping[int, AlertEvent]
    notices: Mapping[str, AlertNoticesDocument]
    problems: Mapping[str, NoticesDocument]


@dataclass(frozen=True)
class Pending:
    """What a team is to be notified of.

    Attributes:
        news: grouped by cause.
        marks: first run of an alert -> the mark after the message; `before` -> the mark before it.
    """

    news: tuple[AlertNews, ...]
    marks: Mapping[str, AlertNotified]
    before: Mapping[str, AlertNotified | None]


def load_tracked(store: "Store", problems: Mapping[str, NoticesDocument], now: float) -> Tracked:
    """Load the alerts of which a team may have to be notified."""
    openings = store.tracked_alerts.openings(now - NEW_S)
    notices = store.documents.of_type(AlertNoticesDocument)
    unended = {mark.alert for document in notices.values() for mark in document.root.values() if mark.open}
    return Tracked(store.tracked_alerts.known(unended | set(openings)), openings, notices, problems)


def pending_news(store: "Store", team: Team, tracked: Tracked, now: float) -> Pending:
    """Return the news of a team, and their marks.

    An alert is reported when it opened or reopened and is `new`: if a user has decided meanwhile, the alert is
    known. Its end is reported to a team that was notified of its begin.
    """
    members: dict[tuple[NewsKind, int], list[tuple[Alert, AlertEvent]]] = {}
    marks: dict[str, AlertNotified] = {}
    before: dict[str, AlertNotified | None] = {}
    for _, alert in sorted(tracked.alerts.items()):
        if REGRESSION not in team.kinds or not team.owns(alert.chain):
            continue
        known = _known(team, alert, tracked)
        event = _opening(alert, known, tracked) or _end(store, alert, known)
        if event is None:
            continue
        kind = NewsKind.ENDED if event.kind is EventKind.GONE else _KINDS[event.kind]
        opened = known.event if known and kind is NewsKind.ENDED else event.ordinal
        is_open = kind is not NewsKind.ENDED
        before[alert.first] = known
        marks[alert.first] = AlertNotified(alert=alert.number, event=opened, at=now, open=is_open)
        members.setdefault((kind, alert.group), []).append((alert, event))
    news = [
        AlertNews(
            kind=kind,
            alerts=tuple(alert for alert, _ in listed),
            events=tuple(event for _, event in listed),
        )
        for (kind, _), listed in members.items()
    ]
    return Pending(tuple(sorted(news, key=lambda each: list(NewsKind).index(each.kind))), marks, before)


def mark(store: "Store", team: str, marks: Mapping[str, AlertNotified | None]) -> None:
    """Store marks of a team; None removes one."""
    for run, notified in marks.items():
        entries = {} if notified is None else {team: notified}
        store.documents.merge(run, AlertNoticesDocument, entries, without=[team])


def places_of_ended(news: Iterable[AlertNews]) -> set[tuple[str, str, str]]:
    """Return chain, mode and environment class of the alerts that ended."""
    return {place for each in news if each.kind is NewsKind.ENDED for place in each.places}


_KINDS = {EventKind.OPENED: NewsKind.NEW, EventKind.REOPENED: NewsKind.REOPENED}


def _known(team: Team, alert: Alert, tracked: Tracked) -> AlertNotified | None:
    """Return the mark; a message about the problem that its first run began was one about the alert."""
    notices, problems = tracked.notices.get(alert.first), tracked.problems.get(alert.first)
    if notices is not None and team.name in notices.root:
        return notices.root[team.name]
    problem = None if problems is None else problems.root.get(team.name)
    if problem is None or not problem.open:
        return None
    return AlertNotified(alert=alert.number, event=_FIRST, at=problem.at, open=False)


def _opening(alert: Alert, known: AlertNotified | None, tracked: Tracked) -> AlertEvent | None:
    event = tracked.openings.get(alert.number)
    if event is None or alert.state is not AlertState.NEW or not alert.is_present:
        return None
    if known is not None and event.ordinal <= known.event:
        return None
    return event


def _end(store: "Store", alert: Alert, known: AlertNotified | None) -> AlertEvent | None:
    if known is None or not known.open or alert.is_present:
        return None
    ends = [event for event in store.tracked_alerts.events(alert.number) if event.kind is EventKind.GONE]
    return ends[-1] if ends else None
