"""`tipcflow import REPO --suite S`: turns the params files of a checked-out suite into chains."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.output.output import print_json
from tipcflow.domain import ConfigError

if TYPE_CHECKING:
    from tipcflow.cli.importing.files import Imported

_SHOWN = 10
STUB = '''"""The chains of suite {suite}: one Airflow DAG per params file in configs/chains/{suite}."""

from tipcflow_operators.chain.dag import chain_dags

globals().update(chain_dags("{suite}"))
'''


def import_suite(
    repo: Annotated[Path, typer.Argument(help="The suite's root: a folder with its checked-out files.")],
    suite: Annotated[str, typer.Option("--suite", "-s", help="Name of the suite in configs/suites.")],
    update: Annotated[
        bool, typer.Option("--update", help="Replace imported files that differ from the suite's.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Copy a suite's params files to configs/chains, generate its DAG file, and report unsupported files.

    Existing files are only replaced with --update; nothing is ever removed.
    """
    from tipcflow.cli.importing.files import import_files, left_over
    from tipcflow.cli.importing.suite_file import other_suites, suite_for
    from tipcflow.config.settings import settings

    if not repo.is_dir():
        raise ConfigError("no such folder", key="REPO", found=str(repo), expected="a checked-out suite")
    config_dir = settings().config_dir
    loaded, message = suite_for(suite, repo, config_dir)
    files = import_files(loaded, repo, config_dir / "chains" / loaded.name, update=update)
    leftovers = left_over(files, config_dir / "chains" / loaded.name)
    dags = write_dags(loaded.name, config_dir) if any(file.runs for file in files) else None
    if as_json:
        listed = [file.as_json() for file in files]
        stub = {"file": str(dags[0]), "state": dags[1]} if dags else None
        print_json({"suite": message, "files": listed, "not_in_the_suite": leftovers, "dags": stub})
    else:
        typer.echo(message)
        _report(files, leftovers)
        if dags:
            typer.echo(f"DAGs: {dags[0]} {dags[1]}")
        for folder in other_suites(repo):
            typer.echo(f"skipped: {folder} has its own params files: import it as a separate suite")
    if not any(file.runs for file in files):
        raise ConfigError(
            "no params file of the suite can be run",
            key="REPO",
            found=f"{len(files)} params files, all refused",
            expected="files of training and inference in the suite's dialect",
        )


def write_dags(suite: str, config_dir: Path | None = None) -> tuple[Path, str]:
    """Write the DAG file of a suite's chains if it is missing or outdated.

    It is in the folder `dags` next to the configuration folder and does not depend on the chains themselves.

    Args:
        suite: the suite's name.
        config_dir: the configuration folder, None for the configured one.

    Returns:
        The file, and its state: `new`, `unchanged` or `updated`.

    Raises:
        ConfigError: the file cannot be written, or its name is taken by another suite.
    """
    from tipcflow.config.settings import settings

    folder = (config_dir or settings().config_dir).resolve().parent / "dags"
    path = folder / f"chains_{re.sub(r'[^A-Za-z0-9_]', '_', suite)}.py"
    text = STUB.format(suite=suite)
    try:
        existing = path.read_text(encoding="utf-8", errors="replace") if path.exists() else None
        if existing == text:
            return path, "unchanged"
        other = re.search(r"chain_dags\([\"'](?P<suite>[^\"']+)", existing or "")
        if other and other["suite"] != suite:
            raise ConfigError(
                "the suite's DAG file has the name of another suite's",
                file=str(path),
                key="--suite",
                found=f"{suite} and {other['suite']}",
                expected="names that differ in letters, digits or '_'",
            )
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(path)) from error
    return path, "new" if existing is None else "updated"


def _report(files: "Sequence[Imported]", leftovers: Sequence[str]) -> None:
    runs = [file for file in files if file.runs]
    states = Counter(file.state for file in runs)
    typer.echo(f"{len(runs)} of {len(files)} params files run: " + _counted(states))
    for file in runs:
        if file.state == "differs":
            typer.echo(f"  differs: {file.chain} differs from the suite's file; kept (--update replaces it)")
    refused = [file for file in files if not file.runs]
    broken = [file for file in refused if file.is_broken]
    for (kind, reason), count in Counter((f.kind, f.reason) for f in refused if f not in broken).items():
        typer.echo(f"refused, {kind}: {count}: {reason}")
    if broken:
        typer.echo(f"refused, cannot be planned: {len(broken)}")
    for file in broken[:_SHOWN]:
        typer.echo(f"  {file.reason.splitlines()[0]}")
    if len(broken) > _SHOWN:
        typer.echo(f"  and {len(broken) - _SHOWN} more: see --json")
    for name in leftovers:
        typer.echo(f"not in the suite, kept: {name}")


def _counted(states: "Counter[str]") -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"
