"""Restores a backup into a database, of either kind, in one transaction."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection, NullPool, create_engine, select, update

from tipcflow.config.settings import safe_url
from tipcflow.domain import ConfigError, Frozen, InfraError
from tipcflow.store import migrate
from tipcflow.store.backup.file import check_backup, open_readonly, sqlite_url
from tipcflow.store.backup.rows import clear, copy_rows, filled_tables, lift_limits, lock_tables, table_names
from tipcflow.store.engine import make_engine, normal_url, reachable, reading, writing
from tipcflow.store.schema import fences

# The migrations give it a row.
_FILLED_BY_MIGRATIONS = fences.name


class Restored(Frozen):
    """What was restored.

    Attributes:
        revision: the schema of the backup; the database has that of this code.
        runs: number of runs.
        replaced: whether the database had rows, which were deleted.
    """

    revision: str
    runs: int
    replaced: bool


def restore(url: str, file: Path, *, replace: bool = False) -> Restored:
    """Fill a database with the rows of a backup; all of them, or none if it fails.

    An empty database gets its tables, a backup of an older tipcflow is upgraded.

    Args:
        replace: delete the rows that the database has.

    Raises:
        ConfigError: the file is not an intact backup, or of a newer tipcflow; the database is newer than this
            code, or has rows and `replace` is not set.
        InfraError: the database, or the copy of an older backup, cannot be written.
    """
    revision = check_backup(file)
    _refuse_itself(url, file)
    _refuse_unsuitable(url, replace)
    with _as_newest(file, revision) as newest:
        migrate.upgrade(url)
        engine = make_engine(url)
        source_engine = create_engine("sqlite://", creator=lambda: open_readonly(newest), poolclass=NullPool)
        try:
            with reachable(url), source_engine.connect() as source, writing(engine) as target:
                return _fill(url, source, target, revision, replace)
        finally:
            engine.dispose()


def _fill(url: str, source: Connection, target: Connection, revision: str, replace: bool) -> Restored:
    names = table_names(source)
    lift_limits(target)
    lock_tables(target, names)
    filled = _filled(target, names)
    if filled and not replace:
        raise _not_empty(url, filled)
    last = max(int(connection.execute(select(fences.c.last)).scalar() or 0) for connection in (source, target))
    clear(target, names)
    copied = copy_rows(source, target, names)
    target.execute(update(fences).values(last=last))  # a fence only grows
    return Restored(revision=revision, runs=copied["runs"], replaced=bool(filled))


def _refuse_itself(url: str, file: Path) -> None:
    parsed = normal_url(url)
    database = Path(parsed.database or "")
    if parsed.get_backend_name() == "sqlite" and database.is_file() and database.samefile(file):
        raise ConfigError(
            "the backup is the database itself", key="FILE", found=str(file), expected="a backup of it"
        )


def _refuse_unsuitable(url: str, replace: bool) -> None:
    """Refuse a database before anything of it is changed."""
    engine = make_engine(url)
    try:
        with reachable(url), reading(engine) as connection:
            revision = migrate.revision_of(connection)
            migrate.refuse_newer(url, revision)
            filled = _filled(connection, table_names(connection)) if revision else []
    finally:
        engine.dispose()
    if filled and not replace:
        raise _not_empty(url, filled)


def _filled(connection: Connection, names: list[str]) -> list[str]:
    return [name for name in filled_tables(connection, names) if name != _FILLED_BY_MIGRATIONS]


def _not_empty(url: str, filled: list[str]) -> ConfigError:
    return ConfigError(
        f"the database {safe_url(url)} is not empty",
        found=f"rows in {', '.join(sorted(filled))}",
        expected="an empty database",
        hint="--replace deletes its rows; make a backup of it first",
    )


@contextmanager
def _as_newest(file: Path, revision: str) -> Iterator[Path]:
    """The backup with the schema of this code: the file itself, or an upgraded copy of an older one."""
    if revision == migrate.HEAD:
        yield file
        return
    with copied(file) as upgraded:
        migrate.upgrade(sqlite_url(upgraded))
        yield upgraded


@contextmanager
def copied(file: Path) -> Iterator[Path]:
    """A temporary copy: beside the backup, where there was space for it, or else in TMPDIR.

    Raises:
        InfraError: naming both folders and why they were not usable.
    """
    beside = file.absolute().parent
    places = [beside] if os.access(beside, os.W_OK | os.X_OK) else []
    failed: list[str] = []
    for place in [*places, None]:
        with ExitStack() as stack:
            try:
                made = tempfile.TemporaryDirectory(
                    prefix=".tipcflow-restore-", dir=place, ignore_cleanup_errors=True
                )
                copy = Path(stack.enter_context(made)) / "backup.db"
                with closing(open_readonly(file)) as source, closing(sqlite3.connect(copy)) as target:
                    source.backup(target)
            except (sqlite3.Error, OSError) as error:
                failed.append(f"{place or os.environ.get('TMPDIR') or 'TMPDIR'}: {error}")
                continue
            yield copy
            return
    raise InfraError(
        f"{file}: a backup of an older schema is upgraded in a copy, which cannot be written: {'; '.join(failed)}",
        hint="free space beside the backup, or name a folder with space in the variable TMPDIR",
    )
