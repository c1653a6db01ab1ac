"""One pass of notifications: what began or ended since the last one is sent once, outside of quiet hours."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.config.teams.team import Team
from tipcflow.domain.alert.entry import OPEN_STATES
from tipcflow.domain.run.drains import DrainsDocument
from tipcflow.domain.run.notices import DIGEST, NoticesDocument, Notified
from tipcflow.execute.drain.drains import all_drains
from tipcflow.execute.notices.alert_news import (
    REGRESSION,
    Pending,
    load_tracked,
    pending_news,
    places_of_ended,
)
from tipcflow.execute.notices.alert_news import mark as mark_alerts
from tipcflow.execute.overview.today import load_today, state_of
from tipcflow.report.notices.message import Ended, Message, changes_message, digest_message, drains_message
from tipcflow.report.overview.alerts import Alerts, make_alerts
from tipcflow.report.overview.today import GREEN, Problem, Today

if TYPE_CHECKING:
    from tipcflow.store import Store
    from tipcflow.store.queries.states import Line

# The kind of problems, in a team's file, that includes drained nodes.
INFRASTRUCTURE = "infrastructure"
# Sends a message to a team; raises if it was not sent.
Send = Callable[[Team, Message], None]


@dataclass(frozen=True)
class Pass:
    """The context of one pass.

    Attributes:
        send: raises if a message was not sent.
        site: URL of Airflow, for links; '' without.
        report: receives a line for each failure.
        now: seconds since the epoch.
    """

    store: "Store"
    send: Send
    site: str
    report: Callable[[str], None]
    now: float


def notify(this: Pass, teams: tuple[Team, ...]) -> str:
    """Send what is due to every team; returns a line with counts.

    A message is marked as sent before it leaves, and the mark is removed if sending raises: a message whose sender
    is killed meanwhile is lost rather than sent twice. A failure is reported and repeated by the next pass.
    """
    if not teams:
        return "no teams in configs/teams: nothing is sent"
    lines = {(line.chain, line.mode, line.environment): line for line in this.store.states.lines()}
    notices = this.store.documents.of_type(NoticesDocument)
    tracked = load_tracked(this.store, notices, this.now)
    counts = {True: 0, False: 0}
    awake = [team for team in teams if not team.quiet.covers(this.now)]
    for team in awake:
        today = load_today(this.store, now=this.now, owns=team.owns)
        pending = pending_news(this.store, team, tracked, this.now)
        errors = (
            _send_changes(this, team, today, lines, pending, notices),
            _send_digest(this, team, today),
            _send_drains(this, team),
        )
        for error in errors:
            if error is not None:
                counts[not error] += 1
            if error:
                this.report(f"team {team.name}: a message was not sent, the next pass repeats it: {error}")
    return (
        f"{counts[True]} messages sent, {counts[False]} not sent; "
        f"{len(teams) - len(awake)} of {len(teams)} teams have quiet hours"
    )


def _send_changes(
    this: Pass,
    team: Team,
    today: Today,
    lines: Mapping[tuple[str, str, str], "Line"],
    pending: Pending,
    notices: Mapping[str, NoticesDocument],
) -> str | None:
    """Send what began and ended; returns None if nothing is due, '' if it was sent, otherwise the error."""
    known = {run: notice.root[team.name] for run, notice in notices.items() if team.name in notice.root}
    began, covered = _began(this, team, today, known)
    ended, over = _ended(this, team, today, lines, known, places_of_ended(pending.news))
    _mark(this.store, team.name, {each.first_bad: _notified(each, this.now) for each in began})
    _mark(this.store, team.name, {each.first_bad: _notified(each, this.now, is_open=False) for each in covered})
    _mark(this.store, team.name, {run: mark.model_copy(update={"open": False}) for run, mark in over.items()})
    mark_alerts(this.store, team.name, pending.marks)
    if not began and not ended and not pending.news:
        return None
    try:
        this.send(team, changes_message(team.name, began, ended, this.site, pending.news))
    except Exception as error:
        # A notifier raises whatever its library does.
        for each in began:
            this.store.documents.merge(each.first_bad, NoticesDocument, {}, without=[team.name])
        _mark(this.store, team.name, over)
        mark_alerts(this.store, team.name, pending.before)
        return f"{type(error).__name__}: {error}"
    return ""


def _began(
    this: Pass, team: Team, today: Today, known: Mapping[str, Notified]
) -> tuple[list[Problem], list[Problem]]:
    """Return the problems to report, and the regressions whose report is that of an alert."""
    began = [each for each in today.new if each.kind in team.kinds and each.first_bad not in known]
    regressions = [each for each in began if each.kind == REGRESSION]
    runs = {run for each in regressions for run in (each.first_bad, each.run)}
    reporting = this.store.tracked_alerts.reporting(runs)
    covered = [each for each in regressions if reporting & {each.first_bad, each.run}]
    return [each for each in began if each not in covered], covered


def _ended(
    this: Pass,
    team: Team,
    today: Today,
    lines: Mapping[tuple[str, str, str], "Line"],
    known: Mapping[str, Notified],
    alerts_ended: set[tuple[str, str, str]],
) -> tuple[list[Ended], dict[str, Notified]]:
    """Return the ends to report, and the marks of all problems that ended, by first bad run.

    The end of a problem is not reported if another kind of problem follows that the team gets, or if an alert of
    the same line ended: the other one is.
    """
    current = {each.first_bad for each in today.problems}
    places = {(each.chain, each.mode, each.environment) for each in today.problems if each.kind in team.kinds}
    over: dict[str, Notified] = {}
    ended = []
    for run, mark in known.items():
        place = (mark.chain, mark.mode, mark.environment)
        line = lines.get(place)
        if not mark.open or run in current or line is None:
            continue
        if line.status in GREEN and place not in alerts_ended:
            state = state_of(line, quarantined=line.run in {each.run for each in today.quarantined})
            ended.append(Ended(state=state, first_bad=run, began_at=this.store.runs.get(run).created_at))
        if line.status in GREEN or place in places:
            over[run] = mark
    return ended, over


def _send_digest(this: Pass, team: Team, today: Today) -> str | None:
    """Send the digest of the week; returns as `_send_changes`."""
    week = team.digest_due(this.now)
    mark = f"{team.name} {week}"
    if not week or not this.store.messages.record(DIGEST, mark, {}):
        return None
    try:
        this.send(team, digest_message(team.name, week, today, this.site, _open_alerts(this, team)))
    except Exception as error:
        # A notifier raises whatever its library does.
        this.store.messages.withdraw(DIGEST, mark)
        return f"{type(error).__name__}: {error}"
    return ""


def _send_drains(this: Pass, team: Team) -> str | None:
    """Send the drained nodes to teams that get problems of nodes; returns as `_send_changes`."""
    if INFRASTRUCTURE not in team.kinds:
        return None
    due = [
        each
        for each in all_drains(this.store)
        if each.drain.ended_at is None and team.name not in each.drain.notified
    ]
    if not due:
        return None
    marked = [each.drain.model_copy(update={"notified": (*each.drain.notified, team.name)}) for each in due]
    for each, drain in zip(due, marked, strict=True):
        this.store.documents.merge(each.run, DrainsDocument, {each.key: drain})
    try:
        this.send(team, drains_message(team.name, [each.drain for each in due], this.site))
    except Exception as error:
        # A notifier raises whatever its library does.
        for each in due:
            this.store.documents.merge(each.run, DrainsDocument, {each.key: each.drain})
        return f"{type(error).__name__}: {error}"
    return ""


def _open_alerts(this: Pass, team: Team) -> Alerts:
    """Return the open alerts of a team's chains, by cause."""
    listed = this.store.tracked_alerts.all(states=OPEN_STATES)
    return make_alerts([alert for alert in listed if team.owns(alert.chain)], at=this.now)


def _notified(problem: Problem, now: float, *, is_open: bool = True) -> Notified:
    line = {"chain": problem.chain, "mode": problem.mode, "environment": problem.environment}
    return Notified(**line, at=now, open=is_open)


def _mark(store: "Store", team: str, marks: Mapping[str, Notified]) -> None:
    for run, mark in marks.items():
        store.documents.merge(run, NoticesDocument, {team: mark})
