"""`tipcflow scaling`: throughput by topology, from printed results, training logs, or runs; `run` measures it."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from tipcflow.cli.output.output import echo_lines, print_json, terminal_width
from tipcflow.cli.output.records import print_records, refuse_both
from tipcflow.cli.scaling.history import scaling_list
from tipcflow.cli.scaling.measure import measure
from tipcflow.cli.scaling.options import Plot
from tipcflow.cli.scaling.text import document, page, records
from tipcflow.domain import ConfigError, Status, exit_code

if TYPE_CHECKING:
    from tipcflow.cli.scaling.inputs import Inputs
    from tipcflow.parse.scaling.scaling import Scaled, Speed

_TABLE, _BATCH = "table", "--batch-size-per-device"
# Columns of --csv.
_COLUMNS = (
    "model", "topology", "devices", "batch_size_per_device", "repeats", "average_speed", "median_speed", "speedup",
    "efficiency", "speeds",
)  # fmt: skip


class DefaultGroup(TyperGroup):
    """A group whose words call `table`, unless they start with a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Called by click; `tipcflow scaling logs/` is `tipcflow scaling table logs/`."""
        known = {*self.commands, *ctx.help_option_names}
        if args and args[0] in known:
            return super().parse_args(ctx, args)
        is_option = not args or args[0].startswith("-")
        if not is_option and not any(arg.startswith(_BATCH) for arg in args) and not Path(args[0]).exists():
            raise ConfigError(
                "is neither a command nor a file",
                key="COMMAND",
                found=args[0],
                expected=f"one of {', '.join(sorted(self.commands))}, or logs and run IDs with {_BATCH}",
            )
        return super().parse_args(ctx, [_TABLE, *args])


app = typer.Typer(
    cls=DefaultGroup,
    help="Throughput, speed-up and efficiency over devices. `tipcflow scaling FILE…` is short for `table FILE…`.",
)
app.command("run")(measure)
app.command("list")(scaling_list)


class Rule(StrEnum):
    """How the speed of a training log is computed."""

    PRINTED = "printed"
    TIME = "time"


@app.command(_TABLE)
def table(
    inputs: Annotated[list[str], typer.Argument(metavar="FILE_OR_RUN", help="Logs, results, or run IDs.")],
    batch: Annotated[int, typer.Option(_BATCH, min=1, help="Samples per device and iteration.")],
    rule: Annotated[
        Rule, typer.Option(help="printed: speed as printed; time: from batch_cost or time stamps.")
    ] = Rule.PRINTED,
    skip: Annotated[int, typer.Option(min=0, help="Number of warm-up iterations to skip.")] = 50,
    take: Annotated[int, typer.Option(min=1, help="Number of iterations to average.")] = 100,
    plot: Plot = None,
    previous: Annotated[
        str | None,
        typer.Option(metavar="FILE_OR_RUN", help="Earlier logs, results or run in the plot (default: of a run)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a row per topology as CSV.")] = False,
) -> None:
    """Show how a training scales over devices: average, median, speed-up and efficiency."""
    from tipcflow.cli.scaling.inputs import Inputs
    from tipcflow.cli.scaling.plot import check_plot
    from tipcflow.parse.scaling.choice import chosen, short_log_messages
    from tipcflow.parse.scaling.plausibility import doubts
    from tipcflow.parse.scaling.scaling import scaled
    from tipcflow.parse.scaling.speeds import Window

    refuse_both(as_json=as_json, as_csv=as_csv)
    if plot:
        check_plot(plot)
    elif previous:
        raise ConfigError("is for plots only", key="--previous", found=previous, expected="--plot FILE.png, too")
    reader = Inputs(rule=rule.value, batch=batch, window=Window(skip, take))
    errors = _read(reader, inputs)
    speeds, left_out = chosen(reader.speeds, batch)
    rows = scaled(speeds, batch)
    notes = [*reader.notes, *left_out, *short_log_messages(speeds, take), *_alone(rows), *doubts(rows)]
    if plot:
        earlier = Inputs(rule=rule.value, batch=batch, window=Window(skip, take))
        errors += _read(earlier, [previous] if previous else [])
        notes.append(_plot(plot, inputs, rows, speeds, scaled(chosen(earlier.speeds, batch)[0], batch)))
    if as_json:
        print_json(document(rows, rule.value, batch, notes, errors))
    elif as_csv:
        print_records(records(rows), names=_COLUMNS)
        for note in notes:
            typer.echo(f"note: {note}", err=True)
    else:
        echo_lines(page(rows, terminal_width()))
        for note in notes:
            typer.echo(f"note: {note}")
    for message in errors:
        typer.echo(f"{Status.CONFIG_ERROR.value}: {message}", err=True)
    if errors:
        raise typer.Exit(exit_code(Status.CONFIG_ERROR))


def _read(reader: "Inputs", inputs: list[str]) -> list[str]:
    """Read all inputs; return the messages of those that are invalid."""
    errors = []
    for name in inputs:
        try:
            reader.read(name)
        except ConfigError as error:
            errors.append(str(error))
    return errors


def _plot(
    file: Path, inputs: list[str], rows: "list[Scaled]", speeds: "list[Speed]", earlier: "list[Scaled]"
) -> str:
    """Write the plot; return a note. A single input may be a run whose series has a previous one."""
    from tipcflow.cli.scaling.panels import panels_of_rows, subtitle_of
    from tipcflow.cli.scaling.plot import write_plot
    from tipcflow.execute.overview.scaling import series_of_run
    from tipcflow.store import Store

    series = None
    if len(inputs) == 1 and not Path(inputs[0]).exists():
        with Store.open() as store:
            series = series_of_run(store, inputs[0])
    panels = panels_of_rows(
        rows,
        speeds,
        subtitle=subtitle_of(series) if series else "",
        before=earlier,
        previous=None if earlier or series is None or not series.previous else series,
    )
    return write_plot(panels, file)


def _alone(table: "list[Scaled]") -> list[str]:
    return [
        f"{model or 'these logs'}: no speed-up, because no run used 1n1g"
        for model in dict.fromkeys(row.model for row in table if row.speedup is None)
    ]
