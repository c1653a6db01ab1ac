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


@app.command("downgrade")
def downgrade(
    revision: Annotated[str, typer.Argument(help="Older schema, for example 0013.", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", help="Downgrade. Default: only report what is lost.")] = False,
    as_json: AsJson = False,
) -> None:
    """Downgrade the database schema for an older tipcflow, which loses data.

    Stop Airflow and back up first. A database with active runs is refused.
    """
    from dataclasses import asdict

    from tipcflow.config.settings import safe_url, settings
    from tipcflow.store.migrations.downgrade import downgrade as apply_downgrade
    from tipcflow.store.migrations.downgrade import plan_downgrade

    url = settings().database_url
    plan = plan_downgrade(url, revision)
    if yes:
        apply_downgrade(url, revision)
    if as_json:
        print_json({"url": safe_url(url), "downgraded": yes, **asdict(plan)})
        return
    if plan.before == revision:
        typer.echo(f"{safe_url(url)} has schema {revision}")
        return
    for step, text in plan.steps:
        typer.echo(f"{step}: {text}")
    lost = [f"table {name} ({_counted(rows, 'row')})" for name, rows in plan.tables.items()]
    lost += [f"column {name}" for name in plan.columns]
    typer.echo(f"{'lost' if yes else 'would be lost'}: {', '.join(lost) or 'no table and no column'}")
    word = "" if yes else " (not changed)"
    typer.echo(f"{safe_url(url)}: schema {plan.before} -> {revision}{word}")
    if plan.active and not yes:
        verb = "has" if len(plan.active) == 1 else "have"
        listed = ", ".join(plan.active[:5])
        typer.echo(f"refused while {_runs(len(plan.active))} {verb} no status: {listed}", err=True)
    if not yes:
        typer.echo("back up with `tipcflow db backup FILE`, then pass --yes to downgrade", err=True)


@app.command("grant")
def grant(
    role: Annotated[str, typer.Argument(help="Role of PostgreSQL, of the web server.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Let a role of PostgreSQL read all tables and add webhook deliveries, nothing else.

    For the web server, which needs no other rights. Run it after each upgrade.
    """
    from tipcflow.config.settings import safe_url, settings
    from tipcflow.store.migrations.grants import grant_reader

    url = settings().database_url
    grant_reader(url, role)
    if as_json:
        print_json({"url": safe_url(url), "role": role, "reads": "all tables", "inserts": ["outbox"]})
    else:
        typer.echo(f"{safe_url(url)}: {role} can read all tables and insert into the table outbox")


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
    return _counted(count, "run")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
