"""`tipcflow changes`: which metrics became worse or better, and with which change of framework or suite."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tipcflow.cli.output.output import columns, echo_lines, terminal_width
from tipcflow.cli.output.records import refuse_both
from tipcflow.cli.overview.printing import AsCsv, AsJson, note_generated, print_for_programs
from tipcflow.domain.numbers.units import percent, utc

if TYPE_CHECKING:
    from tipcflow.report.overview.changes import Change, ChangeGroup, Changes


def changes(
    suite: Annotated[str, typer.Option(help="Only chains of this suite.")] = "",
    chain: Annotated[str, typer.Option(help="Only chains whose name contains this text.")] = "",
    direction: Annotated[
        Literal["worse", "better"] | None, typer.Option(help="Only changes in this direction.")
    ] = None,
    state: Annotated[
        Literal["open", "accepted", "over"] | None, typer.Option(help="Only changes in this state.")
    ] = None,
    days: Annotated[float, typer.Option(min=1, max=400, help="Changes that began in the last N days.")] = 30,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show metrics that became worse or better, grouped by the change of framework and suite they began with."""
    from tipcflow.execute.overview.changes import Wanted, load_changes
    from tipcflow.store import Store

    refuse_both(as_json=as_json, as_csv=as_csv)
    with Store.open() as store:
        wanted = Wanted(suite=suite, chain=chain, direction=direction or "", state=state or "")
        overview = load_changes(store, wanted, days=days)
        note_generated(store.recorded.has_generated())
    if not print_for_programs(overview, as_json=as_json, as_csv=as_csv):
        echo_lines(changes_lines(overview, width=terminal_width()))


def changes_lines(overview: "Changes", *, width: int | None) -> list[str]:
    """The overview as text: a sentence, then a table per group, the worst first."""
    lines = [overview.sentence]
    for group in overview.groups:
        rows = [_row(change) for change in group.changes]
        lines += ["", group_title(group), *columns(_HEAD, rows, width=width)]
    return lines


_HEAD = ("STATUS", "SINCE", "STATE", "CHANGE", "METRIC", "CHAIN")


def group_title(group: "ChangeGroup") -> str:
    """The change of a group and the number of chains: `framework 3.3 -> 3.4: 4 chains worse (3 still)`."""
    counts = []
    if group.worse:
        counts.append(f"{group.worse} worse ({group.still} still)")
    if group.better:
        counts.append(f"{group.better} better")
    suite = f" of {group.suite}" if group.suite else ""
    return f"{group.title}{suite}: {', '.join(counts)}"


def _row(change: "Change") -> tuple[str, ...]:
    size = percent(None if change.ratio is None else change.ratio - 1)
    state = f"{change.state} by {change.who}" if change.who else change.state
    leg = f" {change.leg}" if change.leg else ""
    where = f"{change.chain} on {change.cluster}"
    return change.status.value, utc(change.first_at)[:10], state, size, f"{change.metric}{leg}", where
