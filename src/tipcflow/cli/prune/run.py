"""`tipcflow prune --run`: removes all files of one run, and names what it cannot reach."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from tipcflow.cli.output.output import print_json

if TYPE_CHECKING:
    from tipcflow.execute.sweeps.prune_run import Place


def prune_run(prefix: str, *, yes: bool, as_json: bool) -> None:
    """Remove the files of a run wherever they can be reached; without `yes`, only report them.

    Raises:
        ConfigError: no such run, or it may still write files.
        InfraError: files stay because of an error.
    """
    from tipcflow.config.settings import settings
    from tipcflow.domain import InfraError
    from tipcflow.execute.objects.object_store import object_store
    from tipcflow.execute.sweeps.prune_run import places_of_run, refuse_active
    from tipcflow.store import Store
    from tipcflow.transport.connect import connect

    with Store.open() as store:
        run = store.runs.find(prefix)
        refuse_active(store, run)
        places = places_of_run(store, run, settings().home, object_store(), connect, remove=yes)
    if as_json:
        print_json({"run": run.id, "removed": yes, "places": [place.model_dump() for place in places]})
    else:
        for line in lines_of(places, removed=yes):
            typer.echo(line)
        if not yes:
            typer.echo("pass --yes to remove them", err=True)
    failed = [place for place in places if place.failed]
    if failed:
        raise InfraError(
            f"files of run {run.id} stay in {len(failed)} of {len(places)} places",
            hint="repeat the command when they can be reached",
        )


def lines_of(places: "Sequence[Place]", *, removed: bool) -> list[str]:
    """What was removed where, and what remains."""
    word = "removed" if removed else "would be removed"
    lines = []
    for place in places:
        if place.remains:
            files = f"{place.files}: " if place.files else ""
            lines.append(f"remains: {place.name}: {files}{place.remains}")
        else:
            lines.append(f"{word}: {place.files or 'no files'}: {place.name}")
    return lines
