"""Terminal tables, for the CLI and task logs. Rich is imported only when a table is built."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tipcflow.domain import CheckResult, Facts, Plan, Status
from tipcflow.domain.numbers.units import duration, milliseconds
from tipcflow.report.rows import leg_rows, step_rows, verdict_rows
from tipcflow.report.text.names import short_step, shorten
from tipcflow.report.text.styles import rich_style

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


def checks_table(plan: Plan | None, results: Iterable[CheckResult]) -> Table:
    """Checks with status and reason, worst first."""
    table = _table("Checks", "status", "check", "about", "reason")
    for row in verdict_rows(results):
        _add(table, row.status, row.name, shorten(plan, row.about), shorten(plan, row.text))
    return table


def legs_table(facts: Facts) -> Table:
    """All legs with declared settings, status and latency."""
    table = _table("Inference legs", "status", "leg", "ms per batch", "reason")
    for row in leg_rows(facts):
        step = short_step(facts.plan, row.step)
        name = f"{step}: {row.settings}" if step == row.step else row.settings
        _add(table, row.status, name, milliseconds(row.latency_ms), row.reason)
    return table


def steps_table(facts: Facts) -> Table:
    """All steps with nodes, status and time of the longest job."""
    table = _table("Steps", "status", "step", "nodes", "duration", "reason")
    for row in step_rows(facts):
        name = short_step(facts.plan, row.step)
        _add(table, row.status, name, row.nodes, duration(row.seconds or None), row.reason)
    return table


def status_text(status: Status) -> Text:
    """A colored status."""
    from rich.text import Text

    return Text(status.value, style=rich_style(status))


def _table(title: str, *columns: str) -> Table:
    from rich.table import Table

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="dim",
        box=None,
        pad_edge=False,
        show_edge=False,
    )
    for column in columns:
        # The status is never truncated.
        if column in ("duration", "ms per batch"):
            table.add_column(column, no_wrap=True, justify="right")
        else:
            table.add_column(column, no_wrap=column == "status", overflow="fold")
    return table


def _add(table: Table, status: Status, *cells: str) -> None:
    """Add a row of text without markup: names and reasons come from files and logs."""
    from rich.text import Text

    table.add_row(status_text(status), *map(Text, cells))
