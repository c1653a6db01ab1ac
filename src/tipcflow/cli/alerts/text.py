"""Alerts as text."""

from collections.abc import Sequence

from tipcflow.cli.output.output import columns
from tipcflow.domain.alert.entry import MEANINGS, Alert, AlertEvent
from tipcflow.domain.numbers.units import counted, utc, utc_minute
from tipcflow.report.overview.alerts import AlertDetail, Alerts

_HEAD = ("NUMBER", "STATE", "SINCE", "RUNS", "OWNER", "CHAIN AND METRICS")
_DATE = 10


def alerts_lines(overview: Alerts, *, width: int | None) -> list[str]:
    """The alerts as text: a sentence, then a table per cause."""
    lines = [overview.sentence]
    for group in overview.groups:
        rows = [
            (
                str(alert.number),
                alert.state.value,
                utc(alert.first_at)[:_DATE],
                str(alert.runs),
                alert.owner or "none",
                f"{alert.chain} in {alert.mode}: {alert.about}",
            )
            for alert in group.alerts
        ]
        lines += ["", group.title, *columns(_HEAD, rows, width=width)]
    return lines


def alert_lines(detail: AlertDetail) -> list[str]:
    """One alert, a fact per line, then its history."""
    alert = detail.alert
    lines = [
        f"alert {alert.number}: {alert.state.value} ({MEANINGS[alert.state]})",
        f"chain        {alert.chain} in {alert.mode} on {alert.environment or 'an unknown environment'}",
        f"owner        {alert.owner or 'none'}",
        f"first run    {alert.first}, {utc_minute(alert.first_at)}",
        f"last good    {alert.last_good or 'none'}",
        f"newest run   {alert.newest}, {utc_minute(alert.newest_at)}, {_runs(alert)}",
        f"level        {f'returned in run {alert.gone}' if alert.gone else 'has not returned'}",
        f"suspects     {', '.join(alert.suspects) or 'none known'}",
    ]
    if detail.others:
        lines.append(f"same cause   {_numbers(detail.others)}")
    for moved in alert.metrics:
        scope = " ".join(part for part in (moved.step, moved.leg) if part)
        lines.append(f"metric       {moved.metric} ({scope}), since run {moved.first}: {moved.reason}")
    lines += [f"issue        {url or name}" for name, url in detail.issues.items()]
    if detail.bisection:
        lines.append(f"bisection    {detail.bisection.sentence}")
    if detail.search:
        lines.append(f"to search    {detail.search}")
    return [*lines, "history", *(f"  {event_line(event)}" for event in detail.events)]


def event_line(event: AlertEvent) -> str:
    """One event: time, author, kind, run and text."""
    parts = (utc_minute(event.at), event.who, event.kind.value, event.run, event.text)
    return "  ".join(part for part in parts if part)


def _runs(alert: Alert) -> str:
    return counted(alert.runs, "run")


def _numbers(alerts: Sequence[Alert]) -> str:
    return ", ".join(f"alert {alert.number} ({alert.chain})" for alert in alerts)
