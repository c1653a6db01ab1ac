"""`tipcflow …`: the command line. Commands import what they need when they run, so `--help` is fast."""

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tipcflow.cli import (
    baseline,
    certificate,
    db,
    detect,
    export,
    gate,
    golden,
    history,
    judge,
    lint,
    logs,
    run,
    runs,
)
from tipcflow.cli.bus_error import watch_for_bus_errors
from tipcflow.cli.demo import command as demo
from tipcflow.cli.doctor import command as doctor
from tipcflow.cli.importing import command as import_suite
from tipcflow.cli.nodes import command as nodes
from tipcflow.cli.output.output import without_reader
from tipcflow.cli.parse import command as parse
from tipcflow.cli.plan import command as plan
from tipcflow.cli.scaling import command as scaling
from tipcflow.cli.show import command as show
from tipcflow.cli.trigger import command as trigger
from tipcflow.domain import Status, TipcflowError, exit_code

app = typer.Typer(
    name="tipcflow",
    help="Certifies deep-learning model chains (train, export, inference) on real nodes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("trigger")(trigger.trigger)
app.command("plan")(plan.plan)
app.command("lint")(lint.lint)
app.command("import")(import_suite.import_suite)
app.command("runs")(runs.runs)
app.command("history")(history.history)
app.command("export")(export.export)
app.command("gate")(gate.gate)
app.command("detect")(detect.detect)
app.command("judge")(judge.judge)
app.command("show")(show.show)
app.command("logs")(logs.logs)
app.command("parse")(parse.parse)
app.command("scaling")(scaling.scaling)
app.add_typer(certificate.app, name="certificate")
app.add_typer(golden.app, name="golden")
app.add_typer(baseline.app, name="baseline")
app.add_typer(db.app, name="db")
app.add_typer(nodes.app, name="nodes")
app.command("doctor")(doctor.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"tipcflow {version('tipcflow')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show version and exit.")
    ] = False,
) -> None:
    """Certifies deep-learning model chains (train, export, inference) on real nodes."""


def main() -> None:
    """Entry point: each error becomes one message on stderr and the exit code of its status."""
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115  # closed by the caller
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an ASCII terminal shows what it can
    watch_for_bus_errors()
    try:
        app()
    except TipcflowError as error:
        _print_error(f"{error.status.value}: {error}")
        raise SystemExit(exit_code(error.status)) from error
    except KeyboardInterrupt:
        raise SystemExit(exit_code(Status.CANCELLED)) from None
    except BrokenPipeError:
        # `tipcflow logs … | head`: the reader closed the pipe, which is not an error.
        without_reader()
        raise SystemExit(0) from None
    except Exception as error:
        problem = _local_problem(error)
        if not problem:
            raise
        _print_error(f"{Status.INFRA_FAILURE.value}: {problem}")
        raise SystemExit(exit_code(Status.INFRA_FAILURE)) from error


def _print_error(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr)  # noqa: T201


def _local_problem(error: Exception) -> str:
    """One line about a problem of this machine's disk, network or database; '' for a bug in tipcflow."""
    from tipcflow.store.trouble import database_trouble

    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return f"this machine's disk or network: {error.strerror or error}{where}"
    return database_trouble(error)
