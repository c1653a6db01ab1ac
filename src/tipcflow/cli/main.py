"""`tipcflow …`: the command line. A command is imported when it runs (`commands.table`), so `--help` is fast."""

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from tipcflow.cli.bus_error import watch_for_bus_errors
from tipcflow.cli.commands.lazy import LazyGroup
from tipcflow.cli.commands.signals import end_process_with_command
from tipcflow.cli.commands.table import COMMANDS
from tipcflow.cli.extras import missing_extra
from tipcflow.entry import CANCELLED

if TYPE_CHECKING:
    from tipcflow.domain import Status

# The exit code of typer after Ctrl-C; no status has it.
_INTERRUPTED = 130


class _Commands(LazyGroup):
    table = COMMANDS


app = typer.Typer(
    name="tipcflow",
    cls=_Commands,
    help="Certifies deep-learning model chains (train, export, inference) on real nodes.",
    epilog="`tipcflow COMMAND --help` shows an example.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"tipcflow {version('tipcflow')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show version and exit.")
    ] = False,
) -> None:
    """Certifies deep-learning model chains (train, export, inference) on real nodes."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        context.color = False  # of `typer.echo` in all commands; rich reads the variables itself


def main(*, ends_process: bool = False) -> None:
    """Run a command: each error becomes one message on stderr and the exit code of its status.

    Args:
        ends_process: nothing follows in this process; signals may stay ignored until its end.
    """
    if ends_process:
        end_process_with_command()
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115  # closed by the caller
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an ASCII terminal shows what it can
    watch_for_bus_errors()
    try:
        app()
    except SystemExit as ended:
        if ended.code == _INTERRUPTED:
            raise SystemExit(CANCELLED) from None
        if isinstance(ended.__context__, BrokenPipeError):  # typer exits with 1
            _exit_without_reader()
        raise
    except BrokenPipeError:
        _exit_without_reader()
    except Exception as error:
        _exit_with_status(error)


def _exit_without_reader() -> NoReturn:
    """Exit with 0: in `tipcflow logs … | head` the reader closed the pipe, which is not an error."""
    from tipcflow.cli.output.output import without_reader

    without_reader()
    raise SystemExit(0) from None


def _exit_with_status(error: Exception) -> NoReturn:
    """Print the error as one line and exit with the code of its status; a bug in tipcflow keeps its traceback."""
    from tipcflow.domain import Status, TipcflowError, exit_code

    status, problem = Status.INFRA_FAILURE, ""
    if isinstance(error, TipcflowError):
        status, problem = error.status, str(error)
    elif isinstance(error, ImportError):
        status, problem = Status.CONFIG_ERROR, missing_extra(error)
    else:
        problem = _local_problem(error)
    if not problem:
        raise error
    _print_error(status, problem)
    raise SystemExit(exit_code(status)) from error


def _print_error(status: "Status", problem: str) -> None:
    from tipcflow.cli.output.json_lines import has_json_lines, print_json_line

    with contextlib.suppress(OSError, ValueError):
        if has_json_lines():
            print_json_line(problem, level="error", status=status)
        else:
            print(f"{status.value}: {problem}", file=sys.stderr)  # noqa: T201


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
