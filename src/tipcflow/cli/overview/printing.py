"""What the commands about all chains share."""

from typing import Annotated

import typer
from pydantic import BaseModel

from tipcflow.cli.output.output import print_json

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]


def print_for_programs(overview: BaseModel, *, as_json: bool, as_csv: bool) -> bool:
    """Print an overview as JSON or CSV; return whether either was requested."""
    from tipcflow.report.overview.text import csv_of

    if as_json:
        print_json(overview.model_dump(mode="json"))
    elif as_csv:
        typer.echo(csv_of(overview), nl=False)  # type: ignore[arg-type]
    return as_json or as_csv


def note_generated(is_generated: bool) -> None:
    """Print a warning on stderr that the runs of the database are generated."""
    if is_generated:
        typer.echo("generated runs (`tipcflow demo --history`): no node executed them", err=True)
