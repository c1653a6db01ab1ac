"""Shared base of the parts of a store: the engine and its transactions."""

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Insert,
    RowMapping,
    Table,
    Text,
    any_,
    bindparam,
    func,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite

from tipcflow.domain import ConfigError
from tipcflow.store.engine import reading, writing
from tipcflow.store.identity import FileIdentity


class Database:
    """The engine and its transactions, shared by all parts of a store."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._file: FileIdentity | None = None
        self._shared: Connection | None = None

    def share(self, connection: Connection) -> None:
        """From now on, read with this connection, in its transaction."""
        self._shared = connection

    def remember_file(self) -> None:
        """From now on, each transaction requires that a SQLite file is the one that is open now."""
        self._file = FileIdentity(self.engine)

    def read(self) -> AbstractContextManager[Connection]:
        """Open a transaction that only reads.

        Raises:
            DatabaseLostError: the SQLite file was deleted or replaced.
        """
        if self._shared is not None:
            return nullcontext(self._shared)
        if self._file is not None:
            self._file.check()
        return reading(self.engine)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction that writes.

        Raises:
            DatabaseLostError: the SQLite file was deleted, replaced or made read-only, before the transaction or
                during it: then what it has written is not in the database.
        """
        if self._file is not None:
            self._file.check(writes=True)
        with writing(self.engine) as connection:
            yield connection
        if self._file is not None:
            self._file.check()

    def now(self) -> float:
        """Return the time by the database's clock, seconds since the epoch: the only clock shared by all
        controllers."""
        with self.read() as connection:
            return clock(connection)


class Part:
    """A part of a store; every public method is one transaction, also where it changes several tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _read(self) -> AbstractContextManager[Connection]:
        return self._database.read()

    def _write(self) -> AbstractContextManager[Connection]:
        return self._database.write()


def among(connection: Connection, column: ColumnElement[str], values: Iterable[str]) -> ColumnElement[bool]:
    """Whether a column is one of many values.

    They are one parameter, so their number is not limited and does not change the statement. Otherwise, SQLAlchemy
    and the database process the statement value by value.
    """
    if connection.dialect.name == "postgresql":
        return column == any_(bindparam(None, list(values), postgresql.ARRAY(Text)))
    listed = func.json_each(json.dumps(list(values))).table_valued("value")
    return column.in_(select(listed.c.value))


def clock(connection: Connection) -> float:
    """Return the server's time; a SQLite file is used by one machine, whose clock is used.

    The time of the call, not of the start of the transaction, which may have waited for others.
    """
    if connection.dialect.name == "postgresql":
        return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
    return time.time()


def upsert(connection: Connection, table: Table) -> Insert:
    """Build an INSERT that replaces all columns but the key if the key exists."""
    return _upsert(connection.dialect.name, table)


@cache
def _upsert(dialect: str, table: Table) -> Insert:
    # Built once per table: `excluded` copies all columns, which took a tenth of the time of a run's steps.
    insert: Any = postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
    keys = [column.name for column in table.primary_key]
    rest = {column.name: insert.excluded[column.name] for column in table.columns if column.name not in keys}
    built: Insert = insert.on_conflict_do_update(index_elements=keys, set_=rest)
    return built


def numbered_row(connection: Connection, table: Table, number: int, noun: str) -> RowMapping:
    """Return the row of a table whose key is the column `number`.

    Args:
        noun: what a row is, for the message: `alert`.

    Raises:
        ConfigError: there is none with that number.
    """
    row = connection.execute(select(table).where(table.c.number == number)).mappings().first()
    if row is None:
        last = connection.execute(select(func.max(table.c.number))).scalar()
        article = "an" if noun[0] in "aeiou" else "a"
        expected = f"1 to {last}" if last else f"the number of {article} {noun}; the database has none"
        raise ConfigError(f"no such {noun}", key="NUMBER", found=str(number), expected=expected)
    return row
