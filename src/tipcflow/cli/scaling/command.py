"""`tipcflow scaling`: throughput by topology, from printed results, training logs, or runs."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.cli.output.narrow import fitting
from tipcflow.cli.output.output import echo_lines, print_json, terminal_width
from tipcflow.domain import ConfigError, Status, exit_code

if TYPE_CHECKING:
    from tipcflow.parse.scaling.scaling import Scaled

SCHEMA_VERSION = 1


class Rule(StrEnum):
    """How the speed of a training log is computed."""

    PRINTED = "printed"
    TIME = "time"


def scaling(
    inputs: Annotated[list[str], typer.Argument(metavar="FILE_OR_RUN…", help="Logs, results, or run IDs.")],
    batch: Annotated[
        int, typer.Option("--batch-size-per-device", min=1, help="Samples per device and iteration.")
    ],
    rule: Annotated[
        Rule, typer.Option(help="printed: speed as printed; time: from batch_cost or time stamps.")
    ] = Rule.PRINTED,
    skip: Annotated[int, typer.Option(min=0, help="Number of warm-up iterations to skip.")] = 50,
    take: Annotated[int, typer.Option(min=1, help="Number of iterations to average.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show how a training scales over devices: average, median, speed-up and efficiency."""
    from tipcflow.cli.scaling.inputs import Inputs
    from tipcflow.parse.scaling.choice import chosen, short_log_messages
    from tipcflow.parse.scaling.scaling import scaled
    from tipcflow.parse.scaling.speeds import Window

    reader = Inputs(rule=rule.value, batch=batch, window=Window(skip, take))
    errors = []
    for name in inputs:
        try:
            reader.read(name)
        except ConfigError as error:
            errors.append(str(error))
    speeds, left_out = chosen(reader.speeds, batch)
    table = scaled(speeds, batch)
    notes = [*reader.notes, *left_out, *short_log_messages(speeds, take), *_alone(table)]
    if as_json:
        print_json(document(table, rule.value, batch, notes, errors))
    else:
        echo_lines(page(table, terminal_width()))
        for note in notes:
            typer.echo(f"note: {note}")
    for message in errors:
        typer.echo(f"{Status.CONFIG_ERROR.value}: {message}", err=True)
    if errors:
        raise typer.Exit(exit_code(Status.CONFIG_ERROR))


def _alone(table: "list[Scaled]") -> list[str]:
    return [
        f"{model or 'these logs'}: no speed-up, because no run used 1n1g"
        for model in dict.fromkeys(row.model for row in table if row.speedup is None)
    ]


def document(table: "list[Scaled]", rule: str, batch: int, notes: list[str], errors: list[str]) -> dict[str, Any]:
    """The JSON document (docs/reference/formats.md)."""
    models: dict[str, dict[str, Any]] = {}
    for row in table:
        models.setdefault(row.model, {})[row.topology] = row.model_dump(exclude={"model", "topology"})
    return {
        "schema_version": SCHEMA_VERSION,
        "rule": rule,
        "batch_size_per_device": batch,
        "models": models,
        "notes": notes,
        "errors": errors,
    }


def page(table: "list[Scaled]", width: int | None) -> list[str]:
    """The text table."""
    if not table:
        return []
    headers = ("MODEL", "TOPOLOGY", "DEVICES", "REPEATS", "AVERAGE", "MEDIAN", "SPEED-UP", "EFFICIENCY")
    rows = [
        (
            row.model,
            row.topology,
            str(row.devices),
            str(row.repeats),
            f"{row.average_speed:.2f}",
            f"{row.median_speed:.2f}",
            "-" if row.speedup is None else f"{row.speedup:.2f}",
            "-" if row.efficiency is None else f"{row.efficiency:.1%}",
        )
        for row in table
    ]
    return fitting(headers, rows, width=width, spare=("AVERAGE", "REPEATS", "DEVICES"))
