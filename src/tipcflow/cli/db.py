"""`tipcflow db …`: schema and size of the metrics database."""

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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Dry run.")] = False,
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
