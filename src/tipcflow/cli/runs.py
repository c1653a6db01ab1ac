"""`tipcflow runs`: lists runs, newest first."""

import textwrap
from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from tipcflow.cli.output.chains import find_chain
from tipcflow.cli.output.output import columns, echo_lines, print_csv, print_json, terminal_width
from tipcflow.cli.output.records import refuse_both
from tipcflow.domain import Run, Status
from tipcflow.domain.numbers.units import duration

# Columns of a terminal that are left for the reason, at least; with fewer, a run takes three lines.
_REASON_MIN = 24
_INDENT = "    "


class RunStatus(StrEnum):
    """The statuses that a run can have."""

    PASS = Status.PASS.value
    IMPROVEMENT = Status.IMPROVEMENT.value
    CANCELLED = Status.CANCELLED.value
    INFRA_FAILURE = Status.INFRA_FAILURE.value
    UNCONFIRMED = Status.UNCONFIRMED.value
    REGRESSION = Status.REGRESSION.value
    FAILED = Status.FAILED.value
    CONFIG_ERROR = Status.CONFIG_ERROR.value


def runs(
    chain: Annotated[str | None, typer.Option(help="Only runs of this chain, or of its model.")] = None,
    status: Annotated[RunStatus | None, typer.Option(help="Only runs with this status.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of runs.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """List runs, newest first."""
    from tipcflow.config.settings import settings
    from tipcflow.execute.run import status_spool as spool
    from tipcflow.store import Store

    refuse_both(as_json=as_json, as_csv=as_csv)
    with Store.open() as store:
        spool.apply(settings().home, store)
        known = None if chain is None else find_chain(store, chain, key="--chain")
        matches = store.runs.newest(chain=known, status=Status(status) if status else None, limit=limit)
        queued = store.queue.waiting()
        url = store.url
    if as_json:
        print_json([run.model_dump(mode="json") for run in matches])
    elif as_csv:
        print_csv(_FIELDS, [[str(value(run)) for value in _FIELDS.values()] for run in matches])
    elif matches:
        echo_lines(run_lines(matches, width=terminal_width(), queued=queued))
    else:
        is_filtered = chain is not None or status is not None
        hint = "" if is_filtered else ". Start one: `tipcflow demo`, or see `tipcflow run --help`"
        typer.echo(f"no {'matching ' if is_filtered else ''}runs in {url}{hint}", err=True)


def run_lines(matches: Sequence[Run], *, width: int | None, queued: Collection[str] = ()) -> list[str]:
    """The table; on a narrow terminal the chain and the reason of a run have lines of their own.

    Args:
        width: columns of the terminal; None for no limit.
        queued: IDs of runs that wait for slots, or for an allocation by Slurm.
    """
    head = ("STATUS", "RUN", "TOOK", "CHAIN", "MODE", "CLUSTER", "WHY")
    rows = [_cells(run, queued) for run in matches]
    left = sum(max(len(row[at]) for row in (head, *rows)) + 2 for at in range(len(head) - 1))
    if width is None or left + _REASON_MIN <= width:
        return columns(head, rows, width=width, cut=True)
    first = columns(head[:3], [row[:3] for row in rows], width=None)
    lines = first[:1]
    for start, (*_, chain, mode, cluster, why) in zip(first[1:], rows, strict=True):
        lines += [start, _cut(f"{chain} {mode} on {cluster or 'no cluster'}", width)]
        lines += [_cut(why, width)] if why else []
    return lines


def _cells(run: Run, queued: Collection[str]) -> tuple[str, ...]:
    status = run.status.value if run.status else "queued" if run.id in queued else "running"
    why = run.reason.splitlines()[0] if run.reason else ""
    return status, run.id, duration(run.duration_s), run.chain, run.mode, run.cluster, why


def _cut(text: str, width: int) -> str:
    return _INDENT + textwrap.shorten(text, width - len(_INDENT), placeholder=" …")


_FIELDS: dict[str, Callable[[Run], object]] = {
    "run": lambda run: run.id,
    "status": lambda run: run.status.value if run.status else "",
    "chain": lambda run: run.chain,
    "mode": lambda run: run.mode,
    "cluster": lambda run: run.cluster,
    "environment": lambda run: run.environment,
    "framework": lambda run: run.framework,
    "suite_commit": lambda run: run.suite_commit,
    "seed": lambda run: "" if run.seed is None else run.seed,
    "created_at": lambda run: run.created_at,
    "ended_at": lambda run: "" if run.ended_at is None else run.ended_at,
    "reason": lambda run: run.reason,
}
