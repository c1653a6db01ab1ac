"""The verdict that `tipcflow run` and `tipcflow demo` print at the end."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.cli.output.names import short_step, variant_of
from tipcflow.domain import CheckResult, Facts, Plan, Run, Status

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tipcflow.store import Store

_PIPE_WIDTH = 160


def print_verdict(store: "Store", run: Run, certificate: Path | None) -> None:
    """Print legs, checks, where to find details, and the status as the last line, all on stdout."""
    from tipcflow.execute.verdict.conclusion import is_neutral

    console = _console()
    results = store.check_results(run.id)
    if results:
        facts = store.facts(run.id)
        variant = variant_of(facts.plan)
        console.print(f"\n[bold]{run.chain}[/bold]  {run.mode}  {variant}", soft_wrap=True, markup=True)
        if facts.leg_status:
            console.print(_legs(facts))
        console.print(_checks(facts.plan, results))
    words = [("run", run.id), ("why", run.reason), ("more", f"tipcflow show {run.id}")]
    if is_neutral(store, run):
        words.append(("policy", "`unconfirmed` is neutral: it does not block, exit code 0"))
    if certificate is not None:
        words.append(("certificate", str(certificate)))
    console.print()
    for label, text in words:
        if text:
            console.print(f"{label + ':':<13}{text}", markup=False, soft_wrap=True)
    console.print(run.status.value if run.status else "no status", markup=False, style=_style(run.status))


def _console() -> "Console":
    from rich.console import Console

    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=_PIPE_WIDTH)


def _style(status: Status | None) -> str:
    from tipcflow.report.tables import STYLES

    return f"bold {STYLES[status]}" if status else ""


def _grid(*columns: str) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_edge=False, header_style="dim", title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _legs(facts: Facts) -> "Table":
    from rich.text import Text

    from tipcflow.report import leg_rows
    from tipcflow.report.tables import status_text

    table = _grid("status", "inference leg", "ms/batch", "")
    for row in leg_rows(facts):
        several = short_step(facts.plan, row.step) == row.step
        name = f"{row.step}: {row.settings}" if several else row.settings
        latency = "" if row.latency_ms is None else f"{row.latency_ms:.2f}"
        table.add_row(status_text(row.status), Text(name), Text(latency, justify="right"), Text(row.reason))
    return table


def _checks(plan: Plan, results: list[CheckResult]) -> "Table":
    from rich.text import Text

    from tipcflow.report import verdict_rows
    from tipcflow.report.tables import status_text

    table = _grid("status", "check", "reason")
    for row in verdict_rows(results):
        reason = row.reason if row.gating else f"(does not count) {row.reason}"
        for step in plan.steps:
            reason = reason.replace(step.id, short_step(plan, step.id))
        name = row.check if row.count == 1 else f"{row.check} x {row.count}"
        table.add_row(status_text(row.status), Text(name), Text(reason))
    return table
