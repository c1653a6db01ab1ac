"""`tipcflow scaling run`: trains on each topology of a cluster and prints how the speed scales."""

from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.commands import options
from tipcflow.cli.scaling.options import Plot

if TYPE_CHECKING:
    from pathlib import Path

    from tipcflow.execute.scaling.result import Measured

_Params = Annotated[str, typer.Argument(help="Params file with a section train_benchmark_params.")]
_Suite = Annotated[str, typer.Option("--suite", "-s", help="Suite: a name in configs/suites, or a YAML file.")]
_Cluster = Annotated[
    str, typer.Option("--cluster", "-c", help="Cluster: a name in configs/clusters, or a YAML file.")
]
_Topology = Annotated[
    list[str] | None,
    typer.Option("--topology", "-t", metavar="4n8g", help="Nodes and devices per node; may be repeated."),
]
_PerDevice = Annotated[
    int | None, typer.Option("--batch-size-per-device", min=1, help="Samples per device and iteration.")
]
_Total = Annotated[
    int | None, typer.Option("--global-batch-size", min=1, help="Samples of all devices per iteration.")
]


def measure(
    params: _Params,
    suite: _Suite,
    cluster: _Cluster,
    topology: _Topology = None,
    batch: _PerDevice = None,
    total: _Total = None,
    precision: Annotated[str, typer.Option(help="Precision: one of the file's fp_items.")] = "fp32",
    repeats: Annotated[int, typer.Option(min=1, max=20, help="Trainings per topology.")] = 5,
    by_time: Annotated[
        bool, typer.Option("--by-time", help="Speed from batch_cost instead of the printed speed.")
    ] = False,
    skip: Annotated[int, typer.Option(min=0, help="Number of warm-up iterations to skip.")] = 50,
    take: Annotated[int, typer.Option(min=1, help="Number of iterations to average.")] = 100,
    seed: options.Seed = None,
    policy: Annotated[str, typer.Option(help="Policy: a name in configs/policies.")] = "pr",
    plot: Plot = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Train on each topology, the most nodes last, and show speed-up and efficiency per device.

    The default topologies are 1n1g, 1n2g, 1n4g, 1n8g, 2n1g, 2n2g, 2n8g and 4n8g; those that the cluster does not
    have are not_run. The exit code is that of the worst run.
    """
    from tipcflow.cli.scaling.plot import check_plot
    from tipcflow.cli.scaling.series import run_series
    from tipcflow.config.settings import settings
    from tipcflow.execute.request import RunRequest
    from tipcflow.execute.run.driver import owner_of_this_process
    from tipcflow.execute.scaling.series import MODE, Series
    from tipcflow.parse.scaling.speeds import PRINTED

    if plot:
        check_plot(plot)
    request = RunRequest(
        params=params,
        suite=suite,
        mode=MODE,
        cluster=cluster,
        config_dir=settings().config_dir,
        seed=seed,
        repeats=repeats,
        policy=policy,
        owner=owner_of_this_process(),
    )
    rule = "time" if by_time else PRINTED
    series = Series(request, tuple(topology or ()), batch or 0, total or 0, precision, rule, skip, take)
    result = run_series(series)
    code = _show(result, as_json=as_json)
    if plot:
        typer.echo(f"note: {_write_plot(result, plot)}", err=as_json)
    raise typer.Exit(code)


def _write_plot(result: "Measured", file: "Path") -> str:
    """Write the plot of the series, with the previous series; return a note."""
    from tipcflow.cli.scaling.panels import panels_of_rows, subtitle_of
    from tipcflow.cli.scaling.plot import write_plot
    from tipcflow.execute.overview.scaling import series_of_run
    from tipcflow.store import Store

    with Store.open() as store:
        series = series_of_run(store, result.run) if result.run else None
    panels = panels_of_rows(
        result.rows,
        precision=result.document.precision,
        subtitle=subtitle_of(series) if series else "",
        previous=series if series and series.previous else None,
    )
    return write_plot(panels, file)


def _show(result: "Measured", *, as_json: bool) -> int:
    """Print the result; return the exit code."""
    from tipcflow.cli.output.output import echo_lines, print_json, terminal_width
    from tipcflow.cli.scaling.text import document, page, seed_dictionary, seed_table
    from tipcflow.execute.scaling.result import exit_code_of

    stored = result.document
    topologies = [entry.model_dump(mode="json") for entry in stored.topologies]
    if as_json:
        batch = next((entry.batch_size_per_device for entry in stored.topologies), 0)
        print_json({**document(result.rows, stored.rule, batch, result.notes, []), "topologies": topologies})
    else:
        if result.rows:
            echo_lines([*page(result.rows, terminal_width()), ""])
            typer.echo(f"{seed_dictionary(result.rows)}\n\n{seed_table(result.rows)}\n")
        for entry in stored.topologies:
            if entry.reason:
                run = f" (run {entry.run})" if entry.run else ""
                typer.echo(f"{entry.topology}: {entry.status.value}: {entry.reason}{run}")
        for note in result.notes:
            typer.echo(f"note: {note}")
    return exit_code_of(result)
