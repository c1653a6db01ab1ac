"""Shared base of the parts of the repository class: the engine and its transactions."""

import time
from contextlib import AbstractContextManager

from sqlalchemy import Connection, Engine, Insert, Table, text
from sqlalchemy.dialects import postgresql, sqlite

from tipcflow.store.engine import reading, writing


class StoreBase:
    """Holds the engine; every public method of a part is one transaction."""

    _engine: Engine

    def _read(self) -> AbstractContextManager[Connection]:
        return reading(self._engine)

    def now(self) -> float:
        """Return the time by the database's clock, seconds since the epoch: the only clock shared by all
        controllers."""
        with self._read() as connection:
            return clock(connection)

    def _write(self) -> AbstractContextManager[Connection]:
        return writing(self._engine)


def clock(connection: Connection) -> float:
    """Return the server's time; a SQLite file is used by one machine, whose clock is used.

    The time of the call, not of the start of the transaction, which may have waited for others.
    """
    if connection.dialect.name == "postgresql":
        return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
    return time.time()


def upsert(connection: Connection, table: Table) -> Insert:
    """Build an INSERT that replaces all columns but the key if the key exists."""
    keys = [column.name for column in table.primary_key]
    rest = [column.name for column in table.columns if column.name not in keys]
    if connection.dialect.name == "postgresql":
        pg = postgresql.insert(table)
        return pg.on_conflict_do_update(index_elements=keys, set_={name: pg.excluded[name] for name in rest})
    lite = sqlite.insert(table)
    return lite.on_conflict_do_update(index_elements=keys, set_={name: lite.excluded[name] for name in rest})
