"""`tipcflow chain CHAIN`: baseline, smallest detectable change and last value of each metric of a chain."""

from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.output.chains import find_chain
from tipcflow.cli.output.output import columns, echo_lines, print_json, terminal_width
from tipcflow.cli.output.records import refuse_both
from tipcflow.domain.numbers.units import utc

if TYPE_CHECKING:
    from tipcflow.report.chain.history import ChainHistory

_LISTED = 10


def chain(
    chain: Annotated[
        str, typer.Argument(help="Chain, for example PaddleClas/ResNet50/train_infer_python, or its model.")
    ],
    mode: Annotated[str, typer.Option("--mode", help="Mode. Default: that of the newest run.")] = "",
    environment: Annotated[
        str | None, typer.Option("--environment", help="Environment class. Default: that of the newest run.")
    ] = None,
    last: Annotated[int, typer.Option("--last", min=2, max=500, help="Number of newest runs.")] = 60,
    every: Annotated[bool, typer.Option("--all", help="Show all metrics that are evaluated.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all values of all runs as CSV.")] = False,
) -> None:
    """Show a chain's metrics: baseline, smallest detectable change, and the last value against them."""
    from tipcflow.config.settings import settings
    from tipcflow.execute.chain.load import chain_history
    from tipcflow.report.canonical import plain
    from tipcflow.report.chain.tables import values_csv
    from tipcflow.store import Store

    refuse_both(as_json=as_json, as_csv=as_csv)
    with Store.open() as store:
        known = find_chain(store, chain)
        config_dir = settings().config_dir
        history = chain_history(store, known, mode=mode, environment=environment, last=last, config_dir=config_dir)
    if as_csv:
        typer.echo(values_csv(history), nl=False)
    elif as_json:
        print_json(plain(history.as_json()))
    else:
        echo_lines(page(history, width=terminal_width(), every=every))


def page(history: "ChainHistory", *, width: int | None, every: bool = False) -> list[str]:
    """All lines: metrics by group, the worst first, then the newest runs.

    Args:
        width: columns of the terminal, None for no limit.
        every: also metrics that are not the main ones of their group.
    """
    from tipcflow.domain.numbers.units import percent
    from tipcflow.report.chain.tables import baseline
    from tipcflow.report.comparison.tables import amount

    environment = history.environment or "an unknown environment"
    lines = [history.chain, f"{history.mode} on {environment}, policy {history.policy}", ""]
    shown = [row for row in history.metrics if every or row.is_main]
    cells = [
        (
            amount(row.last, row.unit) or "-",
            percent(row.change) or "-",
            row.verdict,
            baseline(row, history.needed),
            str(row.runs),
            " ".join(filter(None, (row.metric, row.leg, row.step))),
        )
        for row in shown
    ]
    head = ("LAST", "CHANGE", "VERDICT", "BASELINE ± SMALLEST CHANGE", "RUNS", "METRIC")
    lines += columns(head, cells, width=width) if cells else ["no run has an evaluated metric"]
    hidden = len(history.metrics) - len(shown)
    lines += [f"{hidden} more: --all"] if hidden else []
    runs = [
        (run.status.value if run.status else "running", run.id, utc(run.created_at), run.framework)
        for run in reversed(history.runs[-_LISTED:])
    ]
    return [*lines, "", *columns(("STATUS", "RUN", "STARTED (UTC)", "FRAMEWORK"), runs, width=width)]
