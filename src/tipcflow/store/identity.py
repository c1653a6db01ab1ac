"""The identity of an open SQLite file: what is written to a deleted file is lost when it is closed."""

import os
from pathlib import Path

from sqlalchemy import Engine

from tipcflow.domain import DatabaseLostError


class FileIdentity:
    """The file of an open SQLite database, by device and inode; nothing for PostgreSQL and databases in memory.

    A lost file stays lost, also if it is restored later, because the transactions in between are missing.

    Args:
        engine: connected at least once, so that the file exists and its inode is not used again.
    """

    def __init__(self, engine: Engine) -> None:
        name = engine.url.database or ""
        is_file = engine.dialect.name == "sqlite" and name not in ("", ":memory:")
        self._path = Path(name).absolute() if is_file else None
        self._lost = ""
        self._opened = _identity(self._path) if self._path else None
        self._writable = bool(self._path and _is_writable(self._path))

    def check(self, *, writes: bool = False) -> None:
        """Compare the file at the database's path with the file that was opened.

        Args:
            writes: whether the file and its folder must still be writable.

        Raises:
            DatabaseLostError: the file was deleted or replaced, or became read-only; names the file.
        """
        if self._path is None or self._opened is None:
            return
        if not self._lost and _identity(self._path) != self._opened:
            self._lost = f"the metrics database {self._path} was deleted or replaced during the run"
        if not self._lost and writes and self._writable and not _is_writable(self._path):
            self._lost = f"the metrics database {self._path} or its folder became read-only during the run"
        if self._lost:
            raise DatabaseLostError(self._lost)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_writable(path: Path) -> bool:
    """Whether this process may write the file and create SQLite's files next to it."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
