"""`tipcflow suites`: the suites of the configuration, and what was verified with each."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.output.records import AsCsv, print_records, refuse_both

if TYPE_CHECKING:
    from tipcflow.config.suite import Suite

_UNKNOWN = "not run"


def suites(
    name: Annotated[str, typer.Argument(metavar="SUITE", help="Show one suite with all details.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: AsCsv = False,
) -> None:
    """List the suites in configs/suites: source, dialects, log format, and what was verified where.

    Exit code 2 if a suite file is wrong; the other suites are listed.
    """
    from tipcflow.config.settings import settings

    refuse_both(as_json=as_json, as_csv=as_csv)
    folder = settings().config_dir
    suite_list, errors = _read(folder, name)
    if as_json:
        typer.echo(json.dumps([_as_json(suite) for suite in suite_list], indent=2))
    elif as_csv:
        print_records([_as_json(suite) for suite in suite_list])
    elif name:
        for suite in suite_list:
            _print_one(suite)
    else:
        _print_table(suite_list)
    for error in errors:
        typer.echo(error, err=True)
    raise typer.Exit(2 if errors else 0)


def _read(config_dir: Path, name: str) -> tuple[list["Suite"], list[str]]:
    from tipcflow.config.suite import load_suite
    from tipcflow.domain import TipcflowError

    if name:
        return [load_suite(name, config_dir)], []
    suite_list, errors = [], []
    for file in sorted((config_dir / "suites").glob("*.yaml")):
        try:
            suite_list.append(load_suite(file.stem, config_dir))
        except TipcflowError as error:
            errors.append(f"{error.status.value}: {error}")
    return suite_list, errors


def _verified(suite: "Suite") -> str:
    counts: dict[str, int] = {}
    for verification in suite.verified:
        if verification.result != "not_run":
            counts[verification.result] = counts.get(verification.result, 0) + 1
    return ", ".join(f"{count} {result}" for result, count in counts.items()) or _UNKNOWN


def _print_table(suite_list: list["Suite"]) -> None:
    from tipcflow.cli.output.output import columns, echo_lines, terminal_width

    rows = [
        [suite.name, ", ".join(suite.dialects), suite.log_format, _verified(suite), suite.git or suite.folder]
        for suite in suite_list
    ]
    headers = ("SUITE", "DIALECTS", "LOG FORMAT", "VERIFIED", "SOURCE")
    echo_lines(columns(headers, rows, width=terminal_width()))


def _print_one(suite: "Suite") -> None:
    typer.echo(f"{typer.style(suite.name, bold=True)}  {suite.git or suite.folder}")
    typer.echo(f"dialects {', '.join(suite.dialects)}; log format {suite.log_format}; framework {suite.framework}")
    if suite.data_recipe:
        typer.echo(f"data: {suite.data_recipe}")
    for verification in suite.verified:
        where = f" ({verification.where})" if verification.where else ""
        why = f": {verification.why}" if verification.why else ""
        typer.echo(f"{verification.result}: {verification.what}{where}{why}")
    if not suite.verified:
        typer.echo(_UNKNOWN)


def _as_json(suite: "Suite") -> dict[str, object]:
    return {
        "schema_version": 1,
        "name": suite.name,
        "source": suite.git or suite.folder,
        "dialects": list(suite.dialects),
        "log_format": suite.log_format,
        "verified": [verification.model_dump() for verification in suite.verified],
    }
