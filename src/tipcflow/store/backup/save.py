"""Saves a database to a file while other processes use it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from tipcflow.config.settings import safe_url
from tipcflow.domain import ConfigError, Frozen, InfraError
from tipcflow.store import migrate
from tipcflow.store.backup.file import new_file, open_readonly, sqlite_url
from tipcflow.store.backup.rows import clear, copy_rows, lift_limits, table_names
from tipcflow.store.engine import make_engine, normal_url, reachable, reading, writing


class Backup(Frozen):
    """What a backup contains.

    Attributes:
        revision: the schema of the database.
        runs: number of runs.
        size: of the file, bytes.
    """

    revision: str
    runs: int
    size: int


def save(url: str, file: Path) -> Backup:
    """Save all rows that are committed when the backup begins, none of a later transaction.

    The file has the schema of the database, which may be older than that of this code: a backup comes before an
    upgrade. Readers and writers of the database do not wait.

    Raises:
        ConfigError: the file exists, or the database has no tables or is newer than this code.
        InfraError: the database cannot be read, or the file cannot be written.
    """
    parsed = normal_url(url)
    if parsed.get_backend_name() == "sqlite":
        database = Path(parsed.database or ":memory:")
        if not database.is_file():
            raise _nothing(url)
        _refuse_unusable(url, migrate.current(url))
        with new_file(file) as part:
            _copy_file(url, database, part)
    else:
        with new_file(file) as part:
            _export(url, part)
    return _describe(file)


def _copy_file(url: str, database: Path, part: Path) -> None:
    """Copy the pages of one snapshot by SQLite's online backup."""
    try:
        with closing(open_readonly(database)) as source:
            # The snapshot is that of this read; in the write-ahead mode it blocks no writer.
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()
            with closing(sqlite3.connect(part)) as target:
                source.backup(target)
    except sqlite3.Error as error:
        raise InfraError(f"cannot back up the database {safe_url(url)}: {error}") from error


def _export(url: str, part: Path) -> None:
    """Copy the rows of one snapshot of a server, into tables that the migrations make.

    No client program of the server is needed, which would have to be as new as the server.
    """
    engine, part_url = make_engine(url), sqlite_url(part)
    part_engine = make_engine(part_url)
    try:
        with reachable(url), reading(engine) as source:
            lift_limits(source)
            revision = migrate.revision_of(source)
            _refuse_unusable(url, revision)
            migrate.upgrade(part_url, revision)
            with _written(part_engine) as target:
                names = table_names(target)
                clear(target, names)  # the migrations fill some
                copy_rows(source, target, names)
    finally:
        engine.dispose()
        part_engine.dispose()


@contextmanager
def _written(engine: Engine) -> Iterator[Connection]:
    """Open a transaction of the backup's file, whose errors are not those of the server."""
    try:
        with writing(engine) as connection:
            yield connection
    except DBAPIError as error:
        if not isinstance(error.orig, sqlite3.Error):
            raise
        raise InfraError(f"cannot write the backup: {error.orig}") from error


def _refuse_unusable(url: str, revision: str) -> None:
    if not revision:
        raise _nothing(url)
    migrate.refuse_newer(url, revision)


def _nothing(url: str) -> ConfigError:
    return ConfigError(
        f"the database {safe_url(url)} has no tables",
        expected="a database of tipcflow",
        hint="TIPCFLOW_DATABASE_URL and TIPCFLOW_HOME select the database",
    )


def _describe(file: Path) -> Backup:
    with closing(open_readonly(file)) as connection:
        (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        (runs,) = connection.execute("SELECT count(*) FROM runs").fetchone()
    return Backup(revision=revision, runs=runs, size=file.stat().st_size)
