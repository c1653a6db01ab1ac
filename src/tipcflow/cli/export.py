"""`tipcflow export RUN`: all measurements of a run, as CSV."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tipcflow.domain import ConfigError


class What(StrEnum):
    """The data to export."""

    SAMPLES = "samples"
    LEGS = "legs"


def export(
    run: Annotated[str, typer.Argument(help="Run ID or a prefix of it, or latest.")],
    what: Annotated[What, typer.Argument(help="Measurements, or one line per inference leg.")] = What.SAMPLES,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file; `.gz` is compressed.")
    ] = None,
) -> None:
    """Export a run's measurements or inference legs as CSV."""
    from tipcflow.store import Store

    with Store.open() as store:
        run_id = store.runs.find(run).id
        frame = store.frames.samples(run_id) if what is What.SAMPLES else store.frames.legs(run_id)
    if output is None:
        typer.echo(frame.to_csv(index=False, na_rep="nan"), nl=False)
        return
    try:
        frame.to_csv(output, index=False, na_rep="nan")
    except OSError as error:
        raise ConfigError(f"cannot be written: {error}", file=str(output)) from error
    typer.echo(f"{output}: {len(frame)} rows of run {run_id}", err=True)
