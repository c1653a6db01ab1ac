"""`tipcflow prune`: removes old files of runs."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.cli.output.output import print_json
from tipcflow.cli.prune.run import prune_run

if TYPE_CHECKING:
    from tipcflow.execute.sweeps.prune import OldRun, OldRuns

DAYS = 400
_DAY_S = 24 * 3600.0
# Lines of single runs; --json has all.
_LISTED = 20


def prune(
    older_than: Annotated[
        float, typer.Option("--older-than", help="Minimum days since the end of a run.", min=1, metavar="DAYS")
    ] = DAYS,
    run: Annotated[
        str,
        typer.Option(
            "--run",
            metavar="RUN",
            help="Only this run (ID, a prefix of it, or latest), whatever its age or what refers to it; also its "
            "files on its nodes.",
        ),
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Remove the files. Default: only report them.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Remove logs and other files of old runs, here and in the object store; results stay in the database.

    Files of active runs, baselines, open alerts and quarantines stay. With --run, only an active run is refused,
    and each place where files of the run remain is named.
    """
    if run:
        prune_run(run, yes=yes, as_json=as_json)
        return
    from tipcflow.config.settings import settings
    from tipcflow.domain import InfraError
    from tipcflow.execute.objects.object_store import object_store
    from tipcflow.execute.sweeps.prune import find_old_runs, remove_old_runs
    from tipcflow.store import Store

    home, objects = settings().home, object_store()
    with Store.open() as store:
        before = store.now() - older_than * _DAY_S
        old_runs = find_old_runs(store, home, objects, before=before)
        problems = remove_old_runs(store, home, objects, old_runs.runs) if yes else []
    places = {"folder": str(home / "runs"), "store": objects.url if objects is not None else None}
    if as_json:
        print_json(_facts(old_runs, removed=yes, problems=problems) | places)
    else:
        _print(old_runs, f"{older_than:g}", places, removed=yes)
    if problems:
        raise InfraError(
            f"files of {len(problems)} of {len(old_runs.runs)} runs stay", hint="\n    ".join(problems)
        )


def _facts(old_runs: "OldRuns", *, removed: bool, problems: list[str]) -> dict[str, Any]:
    totals = {name: getattr(old_runs, name) for name in ("files", "bytes", "objects", "object_bytes")}
    listed = [_fact(old) for old in old_runs.runs]
    return {"removed": removed, "runs": listed, **totals, "kept": dict(old_runs.kept), "problems": problems}


def _fact(old: "OldRun") -> dict[str, Any]:
    fields = {"files": old.files, "bytes": old.bytes, "objects": len(old.objects)}
    return {"run": old.run.id, "ended_at": old.run.ended_at, **fields, "object_bytes": old.object_bytes}


def _print(old_runs: "OldRuns", days: str, places: dict[str, Any], *, removed: bool) -> None:
    from tipcflow.domain.numbers.units import counted, size, utc_minute

    for old in old_runs.runs[:_LISTED]:
        ended = utc_minute(old.run.ended_at or 0.0)
        typer.echo(f"{old.run.id}  ended {ended}  {size(old.bytes + old.object_bytes)}")
    if len(old_runs.runs) > _LISTED:
        typer.echo(f"and {len(old_runs.runs) - _LISTED} more; --json lists all")
    word = "removed" if removed else "would be removed"
    parts = [f"{counted(old_runs.files, 'file')} ({size(old_runs.bytes)}) in {places['folder']}"]
    if places["store"]:
        parts.append(f"{counted(old_runs.objects, 'object')} ({size(old_runs.object_bytes)}) in {places['store']}")
    count = counted(len(old_runs.runs), "run")
    typer.echo(f"{word}, of {count} that ended more than {days} days ago: {', '.join(parts)}")
    for reason, number in old_runs.kept.items():
        typer.echo(f"kept: files {reason}: {number}")
    if old_runs.runs and not removed:
        typer.echo("pass --yes to remove them", err=True)
