"""`tipcflow demo --history`: fills a database of its own with a generated history."""

from pathlib import Path

import typer

from tipcflow.domain import ConfigError


def generate_history(home: Path, database: str) -> None:
    """Fill a database and print how to use it.

    Args:
        database: its URL; '' for `sample-history.db` in `home`.

    Raises:
        ConfigError: it has runs already.
    """
    from devcluster.sample_history.fill import fill
    from tipcflow.config.settings import safe_url

    url = database or f"sqlite:///{home.absolute() / 'sample-history.db'}"
    typer.echo(f"generating a year of runs of 60 chains in {safe_url(url)}; about half a minute", err=True)
    count = fill(url, lambda line: typer.echo(line, err=True))
    typer.echo(f"{count} generated runs in {safe_url(url)}; no node executed them")
    typer.echo(f"use it with TIPCFLOW_DATABASE_URL={safe_url(url)}, for example `tipcflow today`")


def refuse_other_options(database: str, *, history: bool) -> None:
    """Refuse `--database` without `--history`.

    Raises:
        ConfigError: it is given alone.
    """
    if database and not history:
        raise ConfigError(
            "needs --history",
            key="--database",
            found=database,
            expected="--history --database URL; other demos use TIPCFLOW_DATABASE_URL",
        )
