"""The verdict of a run as a person reads it at the end of `tipcflow run` and `tipcflow demo`."""

from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain import Run

if TYPE_CHECKING:
    from tipcflow.store import Store


def print_verdict(store: "Store", run: Run, certificate: Path | None) -> None:
    """Print legs, checks, where to look, and the status word as the last line (all on stdout)."""
    from rich.console import Console

    from tipcflow.report.tables import checks_table, legs_table

    console = Console(highlight=False, soft_wrap=not _is_terminal())
    facts = store.facts(run.id)
    results = store.check_results(run.id)
    if facts is not None and facts.leg_status:
        console.print(legs_table(facts))
    if results:
        console.print(checks_table(results))
    if run.reason:
        console.print(f"reason: {run.reason}", markup=False)
    console.print(f"more: tipcflow show {run.id}", markup=False)
    if certificate is not None:
        console.print(f"certificate: {certificate}", markup=False, soft_wrap=True)
    console.print(run.status.value if run.status else "no status", markup=False)


def _is_terminal() -> bool:
    import sys

    return sys.stdout.isatty()
