"""Locks between processes on any machines, held by a connection of the database; they end with the process."""

import contextlib
import time
from collections.abc import Iterator

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from tipcflow.domain import InfraError
from tipcflow.domain.numbers.limits import limit
from tipcflow.store.base import Part

# First key of these locks, so that they never meet the advisory locks of other parts; 'tipf' as a number.
_CLASS = 0x74697066
_POLL_S = 0.2


class Locks(Part):
    """Advisory locks of PostgreSQL. A SQLite file is used by one machine, where lock files suffice: no lock."""

    @contextlib.contextmanager
    def held(self, name: str, *, seconds: float) -> Iterator[None]:
        """Hold the lock of that name. The server releases it when the process or its connection ends.

        The lock belongs to a session, not to a transaction, which the server would end when it is idle.

        Raises:
            InfraError: another process holds the lock for longer than `seconds`.
        """
        engine = self._database.engine
        if engine.dialect.name != "postgresql":
            yield
            return
        with engine.connect() as connection:
            session = connection.execution_options(isolation_level="AUTOCOMMIT")
            _acquire(session, name, seconds)
            try:
                yield
            finally:
                _release(session, name)


def _acquire(session: Connection, name: str, seconds: float) -> None:
    """Poll, so that the wait has its own deadline instead of the server's for statements."""
    wanted = text("SELECT pg_try_advisory_lock(:kind, hashtext(:name))")
    until = time.monotonic() + seconds
    while not session.execute(wanted, {"kind": _CLASS, "name": name}).scalar_one():
        if time.monotonic() >= until:
            raise InfraError(
                f"the database's lock {name!r} was held by another process for {limit(seconds)}",
                hint="the process may be on another machine; the lock ends with it",
            )
        time.sleep(_POLL_S)


def _release(session: Connection, name: str) -> None:
    """Release the lock; a broken connection has lost it already and must not hide the error of the body."""
    try:
        session.execute(text("SELECT pg_advisory_unlock(:kind, hashtext(:name))"), {"kind": _CLASS, "name": name})
    except DBAPIError:
        session.invalidate()
