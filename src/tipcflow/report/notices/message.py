"""Messages to teams as plain text, HTML and JSON."""

from collections.abc import Sequence
from html import escape

from pydantic import BaseModel, ConfigDict

from tipcflow.domain.numbers.units import counted, utc_minute
from tipcflow.domain.run.drains import Drain
from tipcflow.report.notices.alerts import CHAINS, AlertNews, alerts_subject
from tipcflow.report.overview.alerts import AlertGroup, Alerts
from tipcflow.report.overview.today import Problem, State, Today
from tipcflow.report.text.plain import one_line

# More problems are counted, not listed: the page has all of them.
LISTED = 20


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Ended(_Model):
    """A reported problem that ended: the chain passes again.

    Attributes:
        first_bad: the run that began it; began_at: its start, seconds since the epoch.
    """

    state: State
    first_bad: str
    began_at: float


class Message(_Model):
    """A message to a team.

    Attributes:
        subject: one line.
        lines: plain text.
        links: text -> URL; empty without the address of the pages.
        facts: the same as JSON values.
    """

    subject: str
    lines: tuple[str, ...]
    links: dict[str, str] = {}
    facts: dict[str, object] = {}

    @property
    def text(self) -> str:
        """The message as plain text."""
        return "\n".join([*self.lines, *(f"{name}: {url}" for name, url in self.links.items())])

    @property
    def html(self) -> str:
        """The message as HTML."""
        links = "".join(f'<li><a href="{escape(url)}">{escape(name)}</a></li>' for name, url in self.links.items())
        body = f"<pre>{escape(chr(10).join(self.lines))}</pre>"
        return f"<html><body>{body}{f'<ul>{links}</ul>' if links else ''}</body></html>"


def changes_message(
    team: str,
    began: Sequence[Problem],
    ended: Sequence[Ended],
    site: str,
    alerts: Sequence[AlertNews] = (),
) -> Message:
    """Return the message about alerts, and about problems that began or ended.

    Args:
        site: URL of Airflow, for links; '' without.
    """
    lines: list[str] = []
    links: dict[str, str] = {}
    for news in alerts[:LISTED]:
        lines += news.lines(team)
        links |= _link(site, f"alert {news.number}", f"alerts/{news.number}")
    for problem in began[:LISTED]:
        lines += _problem_lines(team, problem)
        links |= _link(site, f"{problem.chain} {problem.status.value}", f"runs/{problem.run}")
    for end in ended[:LISTED]:
        lines.append(f"passes again: {_place(end.state)}")
        lines.append(
            f"  was broken since {utc_minute(end.began_at)} (run {end.first_bad}), passes in run {end.state.run}"
        )
        links |= _link(site, f"{end.state.chain} passes", f"runs/{end.state.run}")
    if len(alerts) > LISTED:
        lines.append(f"and {len(alerts) - LISTED} more, see the page Alerts")
    more = max(0, len(began) - LISTED) + max(0, len(ended) - LISTED)
    if more:
        lines.append(f"and {more} more, see the page Today")
    if site:
        links |= _link(site, "Alerts", "alerts") if alerts else {}
        links |= _link(site, "Today", "today")
    return Message(
        subject=f"tipcflow {team}: {_subject(began, ended, alerts)}",
        lines=tuple(lines),
        links=links,
        facts={
            "team": team,
            "alerts": [news.model_dump(mode="json") for news in alerts],
            "began": [problem.model_dump(mode="json") for problem in began],
            "ended": [end.model_dump(mode="json") for end in ended],
        },
    )


def digest_message(team: str, week: str, today: Today, site: str, alerts: Alerts) -> Message:
    """Return the weekly digest: how many chains pass on each build, open alerts, problems, stale chains.

    Args:
        alerts: open ones, by cause.
    """
    lines = [build.sentence for build in today.builds] or [f"no chain ran in the last {today.days:g} days"]
    lines += ["", f"open alerts: {alerts.sentence if alerts.groups else 'none'}"]
    for group in alerts.groups[:LISTED]:
        lines += _group_lines(team, group)
    if len(alerts.groups) > LISTED:
        lines.append(f"and {len(alerts.groups) - LISTED} more causes, see the page Alerts")
    for title, problems in ((f"new in the last {today.new_days:g} days", today.new), ("known", today.known)):
        lines += ["", f"{title}: {len(problems) or 'none'}"]
        for problem in problems[:LISTED]:
            lines += _problem_lines(team, problem)
        if len(problems) > LISTED:
            lines.append(f"and {len(problems) - LISTED} more, see the page Today")
    if today.stale:
        lines += ["", f"not run in the last {today.days:g} days: {len(today.stale)}"]
    return Message(
        subject=f"tipcflow {team}: week {week}, {len(today.new)} new, {len(today.known)} known",
        lines=tuple(lines),
        links=(_link(site, "Alerts", "alerts") if alerts.groups else {}) | _link(site, "Today", "today"),
        facts={
            "team": team,
            "week": week,
            "today": today.model_dump(mode="json"),
            "alerts": alerts.model_dump(mode="json"),
        },
    )


def drains_message(team: str, drains: Sequence[Drain], site: str) -> Message:
    """Return the message about drained nodes, with the command that returns each to service."""
    lines: list[str] = []
    for drain in drains:
        lines += [
            f"drained by {one_line(drain.who)}: node {drain.node} of cluster {drain.cluster} gets no runs",
            f"  reason: {one_line(drain.why)}",
            f"  doubtful: {counted(len(drain.doubtful), 'run')} since then",
            f"  undo: tipcflow nodes undrain {drain.node} --cluster {drain.cluster} --because '…'",
        ]
    names = ", ".join(drain.key for drain in drains)
    return Message(
        subject=f"tipcflow {team}: drained {names}",
        lines=tuple(lines),
        links=_link(site, "Nodes", "nodes"),
        facts={"team": team, "drained": [drain.model_dump(mode="json") for drain in drains]},
    )


def _group_lines(team: str, group: AlertGroup) -> list[str]:
    """Return the alerts with one cause as text."""
    lines = [f"{one_line(group.title)}: {counted(len(group.alerts), 'alert')}"]
    for alert in group.alerts[:CHAINS]:
        place = f"{alert.chain} ({alert.mode} on {alert.environment or 'an unknown environment'})"
        lines.append(f"  alert {alert.number}, {alert.state.value}: {place}: {alert.about}")
        lines.append(f"    since {utc_minute(alert.first_at)}, run {alert.first}; {alert.owner or team}")
    more = len(group.alerts) - CHAINS
    return [*lines, f"  and {more} more, see the page of alert {group.number}"] if more > 0 else lines


def _subject(began: Sequence[Problem], ended: Sequence[Ended], alerts: Sequence[AlertNews]) -> str:
    if len(began) + len(ended) + len(alerts) == 1:
        singles = [f"{problem.status.value} {problem.chain}" for problem in began]
        singles += [f"passes again {end.state.chain}" for end in ended]
        return (singles + [news.subject for news in alerts])[0]
    counts = alerts_subject(alerts)
    counts += [counted(len(began), "new problem")] if began else []
    counts += [f"{len(ended)} pass{'' if len(ended) > 1 else 'es'} again"] if ended else []
    return ", ".join(counts)


def _problem_lines(team: str, problem: Problem) -> list[str]:
    last = f"; last pass {problem.last_good}" if problem.last_good else "; never passed before"
    lines = [
        f"{problem.status.value}: {problem.chain} ({problem.mode} on {problem.cluster}, {problem.framework})",
        f"  reason: {one_line(problem.reason)}",
        f"  since {utc_minute(problem.first_bad_at)}, run {problem.first_bad}{last}",
    ]
    lines += [f"  changed since: {', '.join(problem.suspects)}"] if problem.suspects else []
    owner = "the nodes" if problem.kind == "infrastructure" else team
    return [*lines, f"  belongs to: {owner}"]


def _place(state: State) -> str:
    return f"{state.chain} ({state.mode} on {state.cluster}, {state.framework})"


def _link(site: str, name: str, page: str) -> dict[str, str]:
    return {name: f"{site.rstrip('/')}/certification/{page}"} if site else {}
