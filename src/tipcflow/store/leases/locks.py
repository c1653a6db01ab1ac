"""Locks between processes on any machines, held by a connection of the database; they end with the process."""

import contextlib
import time
from collections.abc import Iterator

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError, OperationalError

from tipcflow.domain import InfraError
from tipcflow.domain.numbers.units import limit
from tipcflow.store.base import Part
from tipcflow.store.engine import connected

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
        until = time.monotonic() + seconds
        with contextlib.ExitStack() as stack:
            session = _session(engine, stack)
            while not _is_acquired(session, name, seconds, until):
                stack.close()  # the server was restarted
                session = _session(engine, stack)
            try:
                yield
            finally:
                _release(session, name)


def _session(engine: Engine, stack: contextlib.ExitStack) -> Connection:
    """Return a connection that `stack` closes; wait for an unavailable server."""
    return stack.enter_context(connected(engine)).execution_options(isolation_level="AUTOCOMMIT")


def _is_acquired(session: Connection, name: str, seconds: float, until: float) -> bool:
    """Acquire the lock; return False if the connection broke before `until`."""
    try:
        _acquire(session, name, seconds, until)
    except OperationalError:
        if time.monotonic() >= until:
            raise
        session.invalidate()
        return False
    return True


def _acquire(session: Connection, name: str, seconds: float, until: float) -> None:
    """Poll, so that the wait has its own deadline instead of the server's for statements."""
    wanted = text("SELECT pg_try_advisory_lock(:kind, hashtext(:name))")
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
