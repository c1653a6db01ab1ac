"""Terminal tables. Rich is imported only when a table is built."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tipcflow.domain import CheckResult, Facts, Status
from tipcflow.report.rows import leg_rows, step_rows, verdict_rows

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

STYLES = {
    Status.PASS: "green",
    Status.IMPROVEMENT: "bold green",
    Status.INSUFFICIENT_DATA: "dim",
    Status.NOT_RUN: "dim",
    Status.BLOCKED: "yellow",
    Status.CANCELLED: "yellow",
    Status.INFRA_FAILURE: "bold magenta",
    Status.UNCONFIRMED: "bold yellow",
    Status.REGRESSION: "bold red",
    Status.FAILED: "bold red",
    Status.CONFIG_ERROR: "bold red",
}


def checks_table(results: Iterable[CheckResult]) -> Table:
    """The verdict table: checks with status and reason, worst first."""
    table = _table("Checks", "check", "about", "status", "reason")
    for row in verdict_rows(results):
        name = row.check if row.count == 1 else f"{row.check} x {row.count}"
        reason = row.reason if row.gating else f"(does not count) {row.reason}"
        table.add_row(_text(name), _text(row.about), status_text(row.status), _text(reason))
    return table


def legs_table(facts: Facts) -> Table:
    """All legs with declared settings, status and latency."""
    table = _table("Inference legs", "leg", "settings", "status", "ms per batch", "reason")
    several = len({row.step for row in leg_rows(facts)}) > 1
    for row in leg_rows(facts):
        name = f"{row.step}/{row.leg}" if several else row.leg
        latency = "" if row.latency_ms is None else f"{row.latency_ms:.2f}"
        table.add_row(_text(name), _text(row.settings), status_text(row.status), _text(latency), _text(row.reason))
    return table


def steps_table(facts: Facts) -> Table:
    """All steps with nodes, status and wall time."""
    table = _table("Steps", "step", "nodes", "status", "seconds", "reason")
    for row in step_rows(facts):
        seconds = f"{row.seconds:.1f}" if row.seconds else ""
        table.add_row(
            _text(row.step), _text(row.nodes), status_text(row.status), _text(seconds), _text(row.reason)
        )
    return table


def status_text(status: Status) -> Text:
    """A coloured status."""
    from rich.text import Text

    return Text(status.value, style=STYLES[status])


def _table(title: str, *columns: str) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left", expand=False)
    for column in columns:
        # The status column is never truncated.
        table.add_column(column, no_wrap=column in ("status", "seconds"), overflow="fold")
    return table


def _text(plain: str) -> Text:
    """Text without markup: names and reasons come from files and logs."""
    from rich.text import Text

    return Text(plain)
