"""The verdict that `tipcflow run` and `tipcflow demo` print at the end."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain import Run, Status
from tipcflow.report.text.names import variant_of
from tipcflow.report.text.styles import rich_style

if TYPE_CHECKING:
    from rich.console import Console

    from tipcflow.store import Store

_PIPE_WIDTH = 160


def print_verdict(store: "Store", run: Run, certificate: Path | None) -> None:
    """Print legs, checks, where to find details, and the status as the last line, all on stdout."""
    from tipcflow.execute.verdict.run_data import load_run
    from tipcflow.report.tables import checks_table, legs_table

    console = stdout_console()
    data = load_run(store, run)
    if data.checks:
        console.print(
            f"\n[bold]{run.chain}[/bold]  {run.mode}  {variant_of(data.plan)}", soft_wrap=True, markup=True
        )
        if data.facts.leg_status:
            console.print(legs_table(data.facts))
        console.print(checks_table(data.plan, data.checks))
    rows = [("run", run.id), ("why", run.reason), ("more", f"tipcflow show {run.id}")]
    if data.neutral:
        rows.append(("policy", "`unconfirmed` is neutral: it does not block, exit code 0"))
    if certificate is not None:
        rows.append(("certificate", str(certificate)))
    console.print()
    for label, text in rows:
        if text:
            console.print(f"{label + ':':<13}{text}", markup=False, soft_wrap=True)
    console.print(run.status.value if run.status else "no status", markup=False, style=_style(run.status))


def stdout_console() -> "Console":
    """A console for stdout. A closed pipe raises BrokenPipeError; rich would exit with code 1."""
    from rich.console import Console

    class Verdict(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Verdict(highlight=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)


def _style(status: Status | None) -> str:
    return f"bold {rich_style(status)}" if status else ""
