"""`tipcflow audit`: who accepted, quarantined, approved and changed what."""

from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.output.output import columns, echo_lines, terminal_width
from tipcflow.cli.output.records import refuse_both
from tipcflow.cli.overview.printing import AsCsv, AsJson, print_for_programs
from tipcflow.domain.numbers.units import utc

if TYPE_CHECKING:
    from tipcflow.report.overview.audit import AuditList


def audit(
    days: Annotated[float, typer.Option(min=1, max=4000, help="Actions of the last N days.")] = 90,
    user: Annotated[str, typer.Option(help="Only actions of this user.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of actions.")] = 100,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show decisions about baselines, quarantines, alerts and code of forks, newest first.

    Who started, stopped and paused in Airflow is on the page Audit.
    """
    from tipcflow.report.overview.audit import audit_list
    from tipcflow.store import Store

    refuse_both(as_json=as_json, as_csv=as_csv)
    with Store.open() as store:
        now = store.now()
        entries = store.audit.entries(now - days * 86_400)
    overview = audit_list(entries, at=now, days=days, limit=limit, user=user)
    if not print_for_programs(overview, as_json=as_json, as_csv=as_csv):
        echo_lines(audit_lines(overview, width=terminal_width()))


def audit_lines(overview: "AuditList", *, width: int | None) -> list[str]:
    """The actions as text."""
    if not overview.entries:
        return [f"no action in the last {overview.days:g} days"]
    rows = [(utc(entry.at), entry.who, entry.action, entry.about, entry.text) for entry in overview.entries]
    lines = columns(("TIME (UTC)", "USER", "ACTION", "ABOUT", "REASON"), rows, width=width)
    more = overview.total - len(rows)
    return [*lines, f"{more} more: --limit"] if more else lines
