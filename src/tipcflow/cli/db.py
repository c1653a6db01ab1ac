"""`tipcflow db …`: the metrics database's schema."""

from typing import Annotated

import typer

from tipcflow.cli.output import print_json

app = typer.Typer(no_args_is_help=True, help="The metrics database.")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def _group() -> None:
    """The metrics database."""


@app.command("upgrade")
def upgrade(as_json: AsJson = False) -> None:
    """Bring the database up to date; it is safe to do so at any time."""
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
    """Say which schema the database has, and which one this tipcflow needs."""
    from tipcflow.config.settings import safe_url, settings
    from tipcflow.store import migrate

    url = settings().database_url
    found, needed = migrate.current(url), migrate.head()
    if as_json:
        print_json({"url": safe_url(url), "current": found, "head": needed})
        return
    typer.echo(f"{safe_url(url)}: schema {found or 'none'}, this tipcflow needs {needed}")
    if found != needed:
        typer.echo("run `tipcflow db upgrade`, or a newer tipcflow where the database is newer", err=True)
