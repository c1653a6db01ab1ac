"""The issue about alerts with one cause: title, text for engineers, and a comment for each change of state."""

from collections.abc import Sequence
from typing import Literal

from tipcflow.config.repository import Repository
from tipcflow.domain.alert.entry import TIPCFLOW, Alert, AlertEvent, AlertState, EventKind
from tipcflow.domain.base import Frozen, Record
from tipcflow.domain.numbers.units import counted, percent, utc_minute
from tipcflow.github.report.check_run import LONGEST_TEXT
from tipcflow.github.report.words import cell, code, link, within
from tipcflow.report.overview.alerts import shared_changes
from tipcflow.report.text.markdown_text import raw_table
from tipcflow.report.text.plain import one_line

# GitHub refuses titles of more than 256 characters.
_LONGEST_TITLE = 200
# More rows are counted: the page of the alert has all of them.
_ROWS = 20
_NOTED = (EventKind.OPENED, EventKind.GONE, EventKind.REOPENED, EventKind.STATE, EventKind.BISECTED)


class IssueNote(Record):
    """A comment on an issue, with the state that the issue gets.

    Attributes:
        marker: the hidden first line by which the comment is found again.
        state: '' leaves the state: a user may have changed it.
        reason: GitHub's reason of a closed issue.
    """

    marker: str
    text: str
    state: Literal["", "open", "closed"] = ""
    reason: str = ""


class Issue(Record):
    """An issue.

    Attributes:
        marker: the hidden first line by which the issue is found again.
        titles: all that it had, the newest last. The title is changed only if it is one of these.
        is_open: whether it is created if it does not exist.
        notes: comments that GitHub may not have yet, oldest first.
    """

    marker: str
    titles: tuple[str, ...]
    text: str
    is_open: bool
    notes: tuple[IssueNote, ...] = ()


class IssueFacts(Frozen):
    """What an issue is about.

    Attributes:
        group: the number of the first alert with this cause, in any suite; `first` is the run that opened it.
        alerts: the alerts of the repository's suite, oldest first; at least one.
        others: number of alerts of other suites with the same cause.
        search: the command that searches the cause; '' if it is unknown.
        site: URL of Airflow, for links; '' without.
    """

    group: int
    first: str
    alerts: tuple[Alert, ...]
    others: int = 0
    search: str = ""
    site: str = ""

    @property
    def is_open(self) -> bool:
        """Whether a user must still decide or work."""
        return any(alert.is_open for alert in self.alerts)

    def page(self, path: str) -> str:
        """The address of a page; '' without a site."""
        return f"{self.site.rstrip('/')}/certification/{path}" if self.site else ""


def issue_marker(facts: IssueFacts, repository: Repository) -> str:
    """The hidden first line: alerts of another database have the same numbers, but no run in common."""
    return f"<!-- tipcflow:{repository.check}:alert:{facts.group}:{facts.first} -->"


def issue_title(facts: IssueFacts) -> str:
    """One line of plain text."""
    chains = {alert.chain for alert in facts.alerts}
    if len(chains) == 1:
        title = f"Regression of {facts.alerts[0].chain}: {facts.alerts[0].about}"
    else:
        about = ", ".join(shared_changes(facts.alerts)) or facts.alerts[0].about
        title = f"Regression of {counted(len(chains), 'chain')}: {about}"
    title = one_line(title)
    return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1]}…"


def issue_text(facts: IssueFacts, repository: Repository) -> str:
    """The body: what changed, which chains and metrics, since when, and how to find the commit."""
    first = min(facts.alerts, key=lambda alert: alert.first_at)
    names = {alert.chain for alert in facts.alerts}
    chains = counted(len(names), "chain") if len(names) > 1 else cell(first.chain)
    suspects = ", ".join(shared_changes(facts.alerts)) or "nothing known"
    before = f"Changed since the last good run: {cell(suspects)}." if first.last_good else "No earlier run passed."
    parts = [
        issue_marker(facts, repository),
        f"Confirmed regression of {chains} since {utc_minute(first.first_at)} (run {_run(facts, first.first)}). "
        f"{before}",
        _alerts_table(facts),
        f"### Metrics\n\n{_metrics_table(facts)}",
        "### Find the cause\n\n" + "\n".join(f"- {line}" for line in _next(facts, first)),
        "tipcflow closes this issue when the level returns or a user decides, and reopens it if the regression is "
        "back. It replaces this text, not the comments. A closed issue does not change the alert.",
    ]
    return within("\n\n".join(parts) + "\n", LONGEST_TEXT)


def _alerts_table(facts: IssueFacts) -> str:
    rows = [
        (
            link(f"alert {alert.number}", facts.page(f"alerts/{alert.number}")),
            alert.state.value,
            cell(f"{alert.chain} ({alert.mode} on {alert.environment or 'an unknown environment'})"),
            f"{_run(facts, alert.first)}, {utc_minute(alert.first_at)}",
            _run(facts, alert.last_good) if alert.last_good else "none",
            _run(facts, alert.gone) if alert.gone else "no",
            cell(alert.owner or "none"),
        )
        for alert in facts.alerts[:_ROWS]
    ]
    head = ("alert", "state", "chain", "first bad run", "last good run", "level returned", "owner")
    lines = [_more(len(facts.alerts), "alert")]
    if facts.others:
        lines.append(f"{counted(facts.others, 'alert')} of other suites with the same cause.")
    return "\n\n".join([raw_table(head, rows), *(line for line in lines if line)])


def _metrics_table(facts: IssueFacts) -> str:
    moved = [(alert, each) for alert in facts.alerts for each in alert.metrics]
    rows = [
        (
            cell(alert.chain),
            cell(" ".join(part for part in (each.step, each.leg) if part)),
            cell(each.metric),
            cell(percent(None if each.ratio is None else each.ratio - 1)),
            cell(f"{each.check}: {each.reason}"),
        )
        for alert, each in moved[:_ROWS]
    ]
    table = raw_table(("chain", "where", "metric", "change", "reason in the newest run"), rows)
    more = _more(len(moved), "metric")
    return f"{table}\n\n{more}" if more else table


def _more(count: int, noun: str) -> str:
    return f"{counted(count - _ROWS, f'more {noun}')}." if count > _ROWS else ""


def _next(facts: IssueFacts, first: Alert) -> list[str]:
    lines = [f"{code(facts.search)} searches the change"] if facts.search else []
    if first.last_good:
        command = code(f"tipcflow compare {first.last_good} {first.first}")
        lines.append(f"{command} compares the last good run with the first bad run")
    lines.append(f"{code(f'tipcflow alerts show {first.number}')} shows runs, metrics and history")
    command = f"tipcflow alerts set {first.number} STATE --because '…'"
    group = " --group" if len(facts.alerts) > 1 else ""
    return [*lines, f"{code(command + group)} decides: acknowledged, expected, fixed or invalid"]


def issue_note(
    facts: IssueFacts, repository: Repository, events: Sequence[AlertEvent], *, was_open: bool
) -> IssueNote | None:
    """The comment about new events; None if none of them changes a state.

    Args:
        events: oldest first.
        was_open: the former value of `facts.is_open`.
    """
    alerts = {alert.number: alert for alert in facts.alerts}
    noted = [event for event in events if event.kind in _NOTED]
    if not noted:
        return None
    last = noted[-1]
    marker = f"<!-- tipcflow:{repository.check}:alert:{facts.group}:event:{last.alert}.{last.ordinal} -->"
    lines = [f"- {_event(facts, alerts[event.alert], event)}" for event in noted[:_ROWS]]
    lines += [more] if (more := _more(len(noted), "event")) else []
    state: Literal["", "open", "closed"] = ""
    if facts.is_open != was_open:
        state = "open" if facts.is_open else "closed"
    is_fixed = any(alert.state is AlertState.FIXED for alert in facts.alerts)
    reason = "" if state != "closed" else "completed" if is_fixed else "not_planned"
    text = within("\n".join([marker, *lines]) + "\n", LONGEST_TEXT)
    return IssueNote(marker=marker, text=text, state=state, reason=reason)


def _event(facts: IssueFacts, alert: Alert, event: AlertEvent) -> str:
    name = f"{link(f'Alert {alert.number}', facts.page(f'alerts/{alert.number}'))}, {cell(alert.chain)}"
    who = "" if event.who == TIPCFLOW else f" ({cell(event.who)})"
    if event.kind is EventKind.OPENED:
        return f"{name}, has the same cause: {cell(alert.about)}, since run {_run(facts, event.run)}"
    if event.kind is EventKind.REOPENED:
        return f"{name}: the regression is back in run {_run(facts, event.run)}: {cell(event.text)}"
    if event.kind is EventKind.GONE:
        decided = f"; {cell(event.text)}{who}" if who else ""
        return f"{name}: the level returned in run {_run(facts, event.run)}{decided}"
    prefix = "the bisection ended: " if event.kind is EventKind.BISECTED else ""
    return f"{name}: {prefix}{cell(event.text)}{who}"


def _run(facts: IssueFacts, run: str) -> str:
    return link(run, facts.page(f"runs/{run}"))
