"""`tipcflow compare A B [C]`: what differs between runs of one chain, and which metrics changed."""

from typing import Annotated

import typer

from tipcflow.cli.output.output import echo_lines, print_json, terminal_width
from tipcflow.cli.output.records import refuse_both


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(help="Two or three runs: run ID or a prefix of it, or latest.", metavar="A B [C]"),
    ],
    policy: Annotated[str, typer.Option(help="Policy whose limits apply. Default: that of the last run.")] = "",
    every: Annotated[bool, typer.Option("--all", help="Also show equal values.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all metrics as CSV.")] = False,
) -> None:
    """Compare runs of a chain with the first: metrics by change in relation to noise, steps, legs and checks."""
    from tipcflow.cli.compare.page import page
    from tipcflow.config.settings import settings
    from tipcflow.execute.comparison.load import compare_runs
    from tipcflow.report.canonical import plain
    from tipcflow.report.comparison.tables import metrics_csv
    from tipcflow.store import Store

    refuse_both(as_json=as_json, as_csv=as_csv)
    with Store.open() as store:
        compared = compare_runs(store, runs, policy=policy, config_dir=settings().config_dir)
    if as_csv:
        typer.echo(metrics_csv(compared), nl=False)
    elif as_json:
        print_json(plain(compared.as_json()))
    else:
        echo_lines(page(compared, width=terminal_width(), every=every))
