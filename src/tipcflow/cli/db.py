"""`tipcflow db …`: schema, size and backups of the metrics database."""

from pathlib import Path
from typing import Annotated

import typer

from tipcflow.cli.output.output import print_json

app = typer.Typer(no_args_is_help=True, help="The metrics database.")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def _group() -> None:
    """The metrics database."""


@app.command("upgrade")
def upgrade(as_json: AsJson = False) -> None:
    """Upgrade the database schema; safe at any time."""
    from tipcflow.config.settings import safe_url, settings
    from tipcflow.store import migrate

    url = settings().database_url
    before = migrate.upgrade(url)
    if as_json:
        print_json({"url": safe_url(url), "before": before, "after": migrate.head()})
    elif before == migrate.head():
        typer.echo(f"{safe_url(url)} is up to date (schema {before})")
    else:
        typer.echo(f"{safe_url(url)}: schema {before or 'none'} -> {migrate.head()}")


@app.command("current")
def current(as_json: AsJson = False) -> None:
    """Show the schema of the database and the schema that this version needs."""
    from tipcflow.config.settings import safe_url, settings
    from tipcflow.store import migrate

    url = settings().database_url
    revision, needed = migrate.current(url), migrate.head()
    if as_json:
        print_json({"url": safe_url(url), "current": revision, "head": needed})
        return
    typer.echo(f"{safe_url(url)}: schema {revision or 'none'}, this version of tipcflow requires {needed}")
    if revision != needed:
        typer.echo("run `tipcflow db upgrade`, or upgrade tipcflow if the database is newer", err=True)


@app.command("rollup")
def rollup(
    older_than: Annotated[
        float, typer.Option("--older-than", help="Minimum days since the end of a run.", min=1, metavar="DAYS")
    ] = 365,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report what would be dropped; change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Drop raw samples of old runs, keep count, mean, median, p10, p90, minimum, maximum and last."""
    from dataclasses import asdict

    from tipcflow.store import Store

    seconds = older_than * 24 * 3600.0
    with Store.open() as store:
        done = store.rollup.preview(older_than_s=seconds) if dry_run else store.rollup.apply(older_than_s=seconds)
    if as_json:
        print_json(asdict(done) | {"dry_run": dry_run})
    else:
        word = "would be rolled up" if dry_run else "rolled up"
        typer.echo(f"{done.samples} raw samples in {done.series} series of {done.runs} runs {word}")


@app.command("backup")
def backup(
    file: Annotated[Path, typer.Argument(help="New file for the backup.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Save the whole database to one file, also while runs write to it."""
    from tipcflow.config.settings import safe_url, settings
    from tipcflow.domain.numbers.units import size
    from tipcflow.store.backup.save import save

    url = settings().database_url
    saved = save(url, file)
    if as_json:
        print_json({"url": safe_url(url), "file": str(file), **saved.model_dump()})
    else:
        typer.echo(f"{safe_url(url)} -> {file}: schema {saved.revision}, {_runs(saved.runs)}, {size(saved.size)}")


@app.command("restore")
def restore(
    file: Annotated[Path, typer.Argument(help="A file of `tipcflow db backup`.", show_default=False)],
    replace: Annotated[bool, typer.Option("--replace", help="Delete the contents of the database first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fill an empty database with a backup of SQLite or PostgreSQL.

    Stop Airflow first. An older backup is upgraded to the schema of this version.
    """
    from tipcflow.config.settings import safe_url, settings
    from tipcflow.store import migrate
    from tipcflow.store.backup import restore as restoring

    url = settings().database_url
    restored = restoring.restore(url, file, replace=replace)
    if as_json:
        print_json({"url": safe_url(url), "file": str(file), "head": migrate.HEAD, **restored.model_dump()})
        return
    upgraded = "" if restored.revision == migrate.HEAD else f", upgraded to {migrate.HEAD}"
    typer.echo(f"{file} -> {safe_url(url)}: schema {restored.revision}{upgraded}, {_runs(restored.runs)}")


def _runs(count: int) -> str:
    return f"{count} run" if count == 1 else f"{count} runs"
