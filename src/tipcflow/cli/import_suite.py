"""`tipcflow import REPO --suite S`: a checked-out suite's params files become chains."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.output import print_json
from tipcflow.domain import ConfigError

if TYPE_CHECKING:
    from tipcflow.cli.import_files import Imported

_SHOWN = 10


def import_suite(
    repo: Annotated[Path, typer.Argument(help="The suite's root: a folder with its checked-out files.")],
    suite: Annotated[str, typer.Option("--suite", "-s", help="Name of the suite in configs/suites.")],
    update: Annotated[
        bool, typer.Option("--update", help="Replace files of ours that differ from the suite's.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Copy a suite's params files to configs/chains, and say what runs, what is refused and why.

    Nothing of ours is replaced without --update, and nothing is ever removed.
    """
    from tipcflow.cli.import_files import import_files, left_over
    from tipcflow.cli.import_suite_file import other_suites, suite_for
    from tipcflow.config.settings import settings

    if not repo.is_dir():
        raise ConfigError("there is no such folder", key="REPO", found=str(repo), expected="a checked-out suite")
    config_dir = settings().config_dir
    loaded, said = suite_for(suite, repo, config_dir)
    files = import_files(loaded, repo, config_dir / "chains" / loaded.name, update=update)
    gone = left_over(files, config_dir / "chains" / loaded.name)
    write_dags(loaded.name)
    if as_json:
        print_json({"suite": said, "files": [file.as_json() for file in files], "not_in_the_suite": gone})
    else:
        typer.echo(said)
        _say(files, gone)
        for folder in other_suites(repo):
            typer.echo(f"not looked at: {folder} has params files of its own: import it as a suite of its own")
    if not any(file.runs for file in files):
        raise ConfigError(
            "no params file of the suite can be run",
            key="REPO",
            found=f"{len(files)} params files, all refused",
            expected="files of training and inference in the suite's dialect",
        )


def write_dags(suite: str) -> None:
    """Make the scheduler know a suite's chains: the desk's part of tipcflow has nothing to write for that."""


def _say(files: "Sequence[Imported]", gone: Sequence[str]) -> None:
    runs = [file for file in files if file.runs]
    states = Counter(file.state for file in runs)
    typer.echo(f"{len(runs)} of {len(files)} params files run: " + _counted(states))
    for file in runs:
        if file.state == "differs":
            typer.echo(f"  differs: {file.chain} is not as in the suite, and was kept; --update replaces it")
    refused = [file for file in files if not file.runs]
    for (kind, reason), count in Counter((f.kind, f.reason) for f in refused if f.kind != "train").items():
        typer.echo(f"refused, {kind}: {count}: {reason}")
    broken = [file for file in refused if file.kind == "train"]
    if broken:
        typer.echo(f"refused, cannot be planned: {len(broken)}")
    for file in broken[:_SHOWN]:
        typer.echo(f"  {file.reason.splitlines()[0]}")
    if len(broken) > _SHOWN:
        typer.echo(f"  and {len(broken) - _SHOWN} more: see --json")
    for name in gone:
        typer.echo(f"not in the suite (any more), kept: {name}")


def _counted(states: "Counter[str]") -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"
