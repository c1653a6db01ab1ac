"""The file of a backup: a SQLite database that no process writes any more."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tipcflow.domain import ConfigError, InfraError
from tipcflow.store import migrate
from tipcflow.store.backup.rows import REVISION_TABLE
from tipcflow.store.engine import LOCKED_S

_MAGIC = b"SQLite format 3\0"
_OURS = "runs"


def sqlite_url(file: Path) -> str:
    """Return the URL of a SQLite file.

    Raises:
        ConfigError: the path contains a `?`, which ends the path in a URL.
    """
    if "?" in str(file.absolute()):
        raise ConfigError(
            "invalid path of a backup", key="FILE", found=str(file.absolute()), expected="a path without '?'"
        )
    return f"sqlite:///{file.absolute()}"


def open_readonly(file: Path) -> sqlite3.Connection:
    """Open a SQLite file without creating or changing it."""
    # as_uri quotes the characters that would end a path in a URI.
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=LOCKED_S, isolation_level=None)


@contextmanager
def new_file(file: Path) -> Iterator[Path]:
    """Create a file that appears complete or not at all; yields the path to write to.

    The file can be read by its owner only, because logs in a database may contain what other users may not see.

    Raises:
        ConfigError: the file exists, or its folder does not.
        InfraError: the disk is full, or the folder cannot be written.
    """
    _refuse_existing(file)
    if not file.parent.is_dir():
        raise ConfigError("no such folder", key="FILE", found=str(file.parent), expected="an existing folder")
    try:
        # A folder of its own, because SQLite writes further files next to a database.
        with tempfile.TemporaryDirectory(prefix=f".{file.name}.", dir=file.parent) as folder:
            part = Path(folder) / "part"
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            yield part
            _finish(part)
            _publish(part, file)
    except (OSError, sqlite3.Error) as error:
        raise InfraError(f"cannot write the backup {file}: {error}") from error


def _finish(part: Path) -> None:
    """Make it one file, on disk."""
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    descriptor = os.open(part, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _publish(part: Path, file: Path) -> None:
    try:
        file.hardlink_to(part)  # refuses, unlike a rename, a file that appeared meanwhile
    except FileExistsError:
        _refuse_existing(file)
    except OSError:  # a file system without hard links
        _refuse_existing(file)
        part.rename(file)
    descriptor = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refuse_existing(file: Path) -> None:
    if file.exists() or file.is_symlink():
        raise ConfigError("a backup never overwrites a file", key="FILE", found=str(file), expected="a new name")


def check_backup(file: Path) -> str:
    """Return the schema of a backup whose pages are all intact.

    Raises:
        ConfigError: not a file, not a backup, damaged, or of a newer tipcflow.
    """
    if not file.is_file():
        raise ConfigError("no such file", key="FILE", found=str(file), expected="a file of `tipcflow db backup`")
    with file.open("rb") as stream:
        if stream.read(len(_MAGIC)) != _MAGIC:
            raise _not_a_backup(file, "a file of another kind")
    try:
        with closing(open_readonly(file)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            if not {REVISION_TABLE, _OURS} <= tables:
                raise _not_a_backup(file, "a SQLite database of another program")
            problem = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
            rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite3.DatabaseError as error:
        raise _damaged(file, str(error)) from error
    if problem != "ok":
        raise _damaged(file, " ".join(problem.split()))
    revision = str(rows[0][0]) if rows else ""
    if revision not in migrate.revisions():
        raise ConfigError(
            f"the backup {file} was made by a newer tipcflow",
            found=f"schema {revision or 'none'}",
            expected=f"schema {migrate.HEAD} or older",
            hint="install the tipcflow that made it",
        )
    return revision


def _not_a_backup(file: Path, kind: str) -> ConfigError:
    return ConfigError(
        "not a backup of tipcflow", file=str(file), found=kind, expected="a file of `tipcflow db backup`"
    )


def _damaged(file: Path, reason: str) -> ConfigError:
    return ConfigError(f"the backup is damaged: {reason}", file=str(file), expected="an intact copy of the file")
