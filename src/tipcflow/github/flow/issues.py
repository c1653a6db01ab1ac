"""Issues about alerts: what GitHub has to show follows from the alerts and their events."""

from collections.abc import Callable, Collection
from typing import NamedTuple

from tipcflow.config.repository import Repository
from tipcflow.domain.alert.entry import OPEN_STATES, Alert
from tipcflow.github.flow.outgoing import IssueBody, MessageKind
from tipcflow.github.report import Issue, IssueFacts, issue_marker, issue_note, issue_text, issue_title
from tipcflow.selection.globs import matches
from tipcflow.store import Store

# Former titles that are kept: by these, a title that a user changed is recognized.
_TITLES = 10


class _Stored(NamedTuple):
    body: IssueBody
    is_sent: bool


def write_issues(
    store: Store, repository: Repository, *, site: str = "", search: Callable[[Alert], str] = lambda _: ""
) -> int:
    """Write the issues of a repository to the outgoing outbox; return the number of those that changed.

    An issue is about all alerts of the repository's chains with one cause. Alerts that are open get one; the issue
    of a cause whose alerts are all closed is closed.

    Args:
        site: address of Airflow's UI, '' if unknown.
        search: returns the command that searches the cause of an alert.
    """
    if repository.alerts != "issues":
        return 0
    stored = {
        int(message.subject): _Stored(IssueBody.of(message), message.sent_revision == message.revision)
        for message in store.messages.of_kind(repository.name, MessageKind.ISSUE)
    }
    members: dict[int, set[int]] = {
        group: set(known.body.covered) for group, known in stored.items() if known.body.issue.is_open
    }
    for alert in store.tracked_alerts.all(states=OPEN_STATES):
        if _concerns(repository, alert):
            members.setdefault(alert.group, set()).add(alert.number)
    newest = store.tracked_alerts.newest_events({number for group in members.values() for number in group})
    changed = 0
    for group, numbers in sorted(members.items()):
        known = stored.get(group)
        if known is None or any(newest.get(number) != known.body.covered.get(number) for number in numbers):
            changed += _write(store, repository, group, known, site=site, search=search)
    return changed


def _concerns(repository: Repository, alert: Alert) -> bool:
    return alert.suite == repository.suite and bool(matches(alert.chain, repository.chains))


def _write(
    store: Store,
    repository: Repository,
    group: int,
    known: _Stored | None,
    *,
    site: str,
    search: Callable[[Alert], str],
) -> bool:
    same_cause = sorted(store.tracked_alerts.of_group(group), key=lambda alert: alert.number)
    own = tuple(alert for alert in same_cause if _concerns(repository, alert))
    first = next((alert for alert in same_cause if alert.number == group), None)
    if not own or first is None:
        return False
    facts = IssueFacts(
        group=group,
        first=first.first,
        alerts=own,
        others=len(same_cause) - len(own),
        search=next((command for command in map(search, own) if command), ""),
        site=site,
    )
    body = _body(store, repository, facts, known)
    is_urgent = known is None or body.issue.notes != known.body.issue.notes
    return store.messages.put(repository.name, MessageKind.ISSUE, str(group), body.stored(), final=is_urgent)


def _body(store: Store, repository: Repository, facts: IssueFacts, known: _Stored | None) -> IssueBody:
    covered = known.body.covered if known else {}
    events = [event for alert in facts.alerts for event in store.tracked_alerts.events(alert.number)]
    notes = () if known is None else known.body.issue.notes
    if known is not None:
        fresh = [event for event in events if event.ordinal > covered.get(event.alert, 0)]
        fresh.sort(key=lambda event: (event.at, event.alert, event.ordinal))
        note = issue_note(facts, repository, fresh, was_open=known.body.issue.is_open)
        if note is not None:
            # Those that were sent are on GitHub.
            notes = (*(() if known.is_sent else notes), note)
    issue = Issue(
        marker=issue_marker(facts, repository),
        titles=_titles(() if known is None else known.body.issue.titles, issue_title(facts)),
        text=issue_text(facts, repository),
        is_open=facts.is_open,
        notes=notes,
    )
    newest = {event.alert: event.ordinal for event in events}
    return IssueBody(first=facts.first, issue=issue, covered=newest)


def _titles(former: Collection[str], title: str) -> tuple[str, ...]:
    return (*[each for each in former if each != title][-_TITLES:], title)
