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
from tipcflow.cli.bisect import command as bisect
from tipcflow.cli.bus_error import watch_for_bus_errors
from tipcflow.cli.chain import command as chain
from tipcflow.cli.compare import command as compare
from tipcflow.cli.demo import command as demo
from tipcflow.cli.dialect import command as dialect
from tipcflow.cli.doctor import command as doctor
from tipcflow.cli.extras import missing_extra
from tipcflow.cli.github import doctor as github
from tipcflow.cli.github import select
from tipcflow.cli.importing import command as import_suite
from tipcflow.cli.init import command as init
from tipcflow.cli.local import airflow as local_airflow
from tipcflow.cli.local import nodes as local_nodes
from tipcflow.cli.local import status
from tipcflow.cli.nodes import command as nodes
from tipcflow.cli.output.output import without_reader
from tipcflow.cli.parse import command as parse
from tipcflow.cli.plan import command as plan
from tipcflow.cli.scaling import command as scaling
from tipcflow.cli.show import command as show
from tipcflow.cli.suites_list import command as suites
from tipcflow.cli.trigger import command as trigger
from tipcflow.domain import Status, TipcflowError, exit_code

# The exit code with which typer answers Ctrl-C; no status has it.
_INTERRUPTED = 130

app = typer.Typer(
    name="tipcflow",
    help="Certifies deep-learning model chains (train, export, inference) on real nodes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

app.command("demo")(demo.demo)
app.add_typer(local_nodes.app, name="local")
app.add_typer(local_airflow.app, name="airflow")
app.command("status")(status.status)
app.command("run")(run.run)
app.command("trigger")(trigger.trigger)
app.command("plan")(plan.plan)
app.command("select")(select.select)
app.command("suites")(suites.suites)
app.command("lint")(lint.lint)
app.command("init")(init.init)
app.command("import")(import_suite.import_suite)
app.command("runs")(runs.runs)
app.command("chain")(chain.chain)
app.command("compare")(compare.compare)
app.command("history")(history.history)
app.command("export")(export.export)
app.command("gate")(gate.gate)
app.command("bisect")(bisect.bisect)
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
app.add_typer(dialect.app, name="dialect")
app.command("doctor")(doctor.doctor)
app.add_typer(github.app, name="github")


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
    except SystemExit as ended:
        if ended.code == _INTERRUPTED:
            raise SystemExit(exit_code(Status.CANCELLED)) from None
        raise
    except BrokenPipeError:
        # `tipcflow logs … | head`: the reader closed the pipe, which is not an error.
        without_reader()
        raise SystemExit(0) from None
    except ImportError as error:
        missing = missing_extra(error)
        if not missing:
            raise
        _print_error(f"{Status.CONFIG_ERROR.value}: {missing}")
        raise SystemExit(exit_code(Status.CONFIG_ERROR)) from None
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
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return f"I/O error on this machine: {error.strerror or error}{where}"
    # Without SQLAlchemy (the base installation) no error is one of the database.
    if "sqlalchemy" not in sys.modules:
        return ""
    from tipcflow.store.trouble import database_error_message

    return database_error_message(error)
