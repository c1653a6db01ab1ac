"""`tipcflow dialect`: lists dialects and checks them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tipcflow.cli.dialect.against import Comparison
    from tipcflow.params import Dialect

app = typer.Typer(help="Dialects: how the params files of a suite are read.", no_args_is_help=True)


@app.command("list")
def list_dialects() -> None:
    """List all dialects: the shipped ones, and those in the folder dialects of the configuration."""
    from tipcflow.params import known_dialects

    for name in known_dialects():
        typer.echo(name)


@app.command("check")
def check(
    name: Annotated[str, typer.Argument(metavar="DIALECT", help="Name of the dialect.")],
    params: Annotated[
        list[str] | None, typer.Argument(metavar="PARAMS", help="Params files that must match the line map.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of the suite, which contains test_tipc: run its script on the params files (default: all "
            "that match; a folder: those in it) in a copy of the suite, with programs that only record their "
            "call, and compare the commands.",
        ),
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(help="With --against: the mode; may be repeated. Default: the dialect's first."),
    ] = None,
    script: Annotated[
        str, typer.Option(metavar="PATH", help="With --against: the script, relative to the folder.")
    ] = "",
) -> None:
    """Check a dialect: keys, slots, axes, placeholders and quirks; and its line map against params files.

    Exit code 1 if a params file does not match or a command differs, 2 if the dialect is wrong."""
    from tipcflow.domain import ConfigError
    from tipcflow.params import load_dialect

    dialect = load_dialect(name)
    typer.echo(f"{name}: {len(dialect.line_map().slots)} slots, modes {', '.join(dialect.run_modes)}")
    if against is not None:
        raise typer.Exit(_against(dialect, against, params or [], mode or [], script))
    if mode or script:
        given = "--mode" if mode else "--script"
        raise ConfigError("requires --against", key=given, expected="--against FOLDER with the suite's script")
    wrong = 0
    for file in params or ():
        try:
            _match(file, name)
        except ConfigError as error:
            wrong += 1
            typer.echo(str(error))
    if params:
        typer.echo(f"{len(params) - wrong} of {len(params)} params files match the line map")
    raise typer.Exit(1 if wrong else 0)


def _against(dialect: "Dialect", root: Path, params: list[str], modes: list[str], script: str) -> int:
    """Compare with the suite's script; return the exit code."""
    from tipcflow.cli.dialect.against import check_against
    from tipcflow.domain import ConfigError

    if not root.is_dir():
        raise ConfigError("no such folder", file=str(root), key="--against", expected="the suite's folder")

    def report(comparison: "Comparison") -> None:
        """Print the result of a comparison."""
        word = (
            f"differs: {comparison.difference}"
            if comparison.difference
            else f"{comparison.commands} commands, equal"
        )
        typer.echo(f"{comparison.params}  {comparison.mode}: {word}")

    made = check_against(dialect, root, params=params, modes=modes, script=script, report=report)
    equal = sum(not comparison.difference for comparison in made)
    if not made:
        typer.echo(f"no params file below {root}/test_tipc/configs matches the line map")
        return 1
    silent = sum(not comparison.commands for comparison in made)
    none = f"; in {silent} of them the script runs no command" if silent else ""
    typer.echo(f"{equal} of {len(made)} runs of the script have the commands of the dialect{none}")
    return 0 if equal == len(made) else 1


def _match(file: str, name: str) -> None:
    """Raise ConfigError if a params file cannot be read, or does not match the line map."""
    from pathlib import Path

    from tipcflow.domain import ConfigError
    from tipcflow.domain.errors import why_unreadable
    from tipcflow.params import load_dialect, parse_params

    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {why_unreadable(error)}", file=file) from error
    parse_params(text, file=file, dialect=load_dialect(name))
