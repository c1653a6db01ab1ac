"""`tipcflow scaling list`: the scaling chains in the metrics database."""

from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.scaling.options import Plot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tipcflow.report.overview.scaling import ScalingList, ScalingSeries, TopologyRow


def scaling_list(
    chain: Annotated[str, typer.Option(help="Only chains whose name contains this text.")] = "",
    cluster: Annotated[str, typer.Option(help="Only this cluster.")] = "",
    days: Annotated[float, typer.Option(min=1, max=400, help="Series of the last N days.")] = 365,
    plot: Plot = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Show the series that `tipcflow scaling run` measured, each compared with the previous one."""
    from tipcflow.cli.output.output import echo_lines, terminal_width
    from tipcflow.cli.output.records import refuse_both
    from tipcflow.cli.overview.printing import note_generated, print_for_programs
    from tipcflow.cli.scaling.plot import check_plot
    from tipcflow.execute.overview.scaling import load_scaling
    from tipcflow.store import Store

    refuse_both(as_json=as_json, as_csv=as_csv)
    if plot:
        check_plot(plot)
    with Store.open() as store:
        overview = load_scaling(store, days=days, chain=chain, cluster=cluster)
        note_generated(store.recorded.has_generated())
    if not print_for_programs(overview, as_json=as_json, as_csv=as_csv):
        echo_lines(list_lines(overview, width=terminal_width()))
    if plot:
        typer.echo(f"note: {_write_plot(overview, plot)}", err=as_json or as_csv)


def _write_plot(overview: "ScalingList", file: "Path") -> str:
    """Write the plot of the newest series; return a note."""
    from tipcflow.cli.scaling.panels import panel_of_series
    from tipcflow.cli.scaling.plot import write_plot

    note = write_plot(panel_of_series(overview.series[0]) if overview.series else [], file)
    newest = f": the newest of {len(overview.series)} series" if len(overview.series) > 1 else ""
    return f"{note}{newest}"


def list_lines(overview: "ScalingList", *, width: int | None) -> list[str]:
    """The series as text, newest first: a title, a table and notes each."""
    if not overview.series:
        return [f"no scaling chain in the last {overview.days:g} days; `tipcflow scaling run` measures one"]
    lines: list[str] = []
    for series in overview.series:
        lines += ["", *_series_lines(series, width)]
    return lines[1:]


def _series_lines(series: "ScalingSeries", width: int | None) -> list[str]:
    from tipcflow.cli.output.output import columns
    from tipcflow.domain.numbers.units import utc

    title = f"{series.chain}, {series.precision} on {series.cluster}, {series.framework}, {utc(series.created_at)}"
    head = ("TOPOLOGY", "MEDIAN", "SPREAD", "SPEED-UP", "EFFICIENCY", "TO PREVIOUS", "STATUS", "RUN")
    reasons = [f"{row.topology}: {row.status.value}: {row.reason}" for row in series.topologies if row.reason]
    notes = [f"note: {note}" for note in series.notes]
    return [title, *columns(head, [_row(row) for row in series.topologies], width=width), *reasons, *notes]


def _row(row: "TopologyRow") -> tuple[str, ...]:
    from tipcflow.domain.numbers.units import percent, percentage

    return (
        row.topology,
        _figure(row.median_speed, "{:.2f}".format),
        _figure(row.spread, percentage),
        _figure(row.speedup, "{:.2f}".format),
        _figure(row.efficiency, percentage),
        _figure(row.change, percent),
        row.status.value,
        row.run or "-",
    )


def _figure(value: float | None, form: "Callable[[float], str]") -> str:
    return "-" if value is None else form(value)
