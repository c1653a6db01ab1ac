"""`tipcflow runs`: lists runs, newest first."""

from collections.abc import Sequence
from typing import Annotated

import typer

from tipcflow.cli.output.output import columns, echo_lines, print_json, terminal_width
from tipcflow.domain import Run, Status
from tipcflow.report.text.units import duration


def runs(
    chain: Annotated[str | None, typer.Option(help="Only runs of this chain.")] = None,
    status: Annotated[Status | None, typer.Option(help="Only runs with this status.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of runs.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List runs, newest first."""
    from tipcflow.config.settings import settings
    from tipcflow.execute.run import status_spool as spool
    from tipcflow.store import Store

    with Store.open() as store:
        spool.apply(settings().home, store)
        matches = store.runs.newest(chain=chain, status=status, limit=limit)
        is_filtered = chain is not None or status is not None
    if as_json:
        print_json([run.model_dump(mode="json") for run in matches])
        return
    if not matches:
        typer.echo("no matching runs" if is_filtered else "no runs yet: see `tipcflow run --help`", err=True)
        return
    echo_lines(run_lines(matches, width=terminal_width()))


def run_lines(matches: Sequence[Run], *, width: int | None) -> list[str]:
    """The table, one or two lines per run; a run's id begins with its start time (UTC)."""
    rows = []
    for run in matches:
        spent = None if run.ended_at is None else run.ended_at - run.created_at
        about = f"{run.chain} {run.mode} on {run.cluster or 'no cluster'}"
        status = run.status.value if run.status else "…"
        why = f"{run.reason.splitlines()[0]} ({about})" if run.reason else about
        rows.append((status, run.id, duration(spent), why))
    return columns(("STATUS", "RUN", "TOOK", "WHY"), rows, width=width, cut=True)
