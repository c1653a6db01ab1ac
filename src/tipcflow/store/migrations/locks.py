"""Locks of a migration on PostgreSQL: awaited in short turns, because readers queue behind an awaited lock."""

import time
from collections.abc import Callable

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from tipcflow.config.settings import safe_url
from tipcflow.domain import InfraError
from tipcflow.domain.numbers.units import limit
from tipcflow.store.engine import reading

# One turn, the pause in which readers continue, and the number of turns.
LOCK_S, PAUSE_S, TURNS = 30.0, 10.0, 5
# Maximum wait for the end of another migration, seconds.
OTHER_S = 600.0
_POLL_S = 1.0
_KEY = 0x71FCF10
_NOT_AVAILABLE = "55P03"
# Sessions that hold locks on tables of this database, the oldest transaction first.
_HOLDERS = """
SELECT DISTINCT activity.pid, activity.usename, activity.application_name, activity.state,
    to_char(activity.query_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS began, activity.xact_start
FROM pg_locks AS held
JOIN pg_stat_activity AS activity USING (pid)
JOIN pg_class AS relation ON relation.oid = held.relation
JOIN pg_namespace AS schema ON schema.oid = relation.relnamespace
WHERE held.granted AND held.pid <> pg_backend_pid() AND schema.nspname = current_schema()
    AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
ORDER BY activity.xact_start, activity.pid
"""
# A key of 64 bits is stored in two halves; that of migrations has only the lower one.
_MIGRATION = """
SELECT DISTINCT activity.pid, activity.usename, activity.application_name, activity.state,
    to_char(activity.query_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS began, activity.xact_start
FROM pg_locks AS held JOIN pg_stat_activity AS activity USING (pid)
WHERE held.locktype = 'advisory' AND held.granted AND held.classid = 0 AND held.objid = :key
    AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def take_turns(engine: Engine, url: str, migrate: Callable[[], str]) -> str:
    """Return the result of a migration, which is repeated as a whole if a lock was not available in time.

    Raises:
        InfraError: other sessions held the locks in every turn; it names them.
    """
    for turn in range(TURNS):
        if turn:
            time.sleep(PAUSE_S)
        try:
            return migrate()
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", "") != _NOT_AVAILABLE:
                raise
    with reading(engine) as connection:
        sessions = _sessions(connection, _HOLDERS)
    raise InfraError(
        f"the schema of the database {safe_url(url)} is unchanged: in {TURNS} turns of {limit(LOCK_S)}, "
        f"its tables were locked by {sessions or 'sessions that have ended meanwhile'}",
        hint="repeat the command when they have ended, or end them: SELECT pg_terminate_backend(PID)",
    )


def limit_waits(connection: Connection, url: str) -> None:
    """Set the limits of a migration's transaction, and await the end of any other migration of the database.

    Raises:
        InfraError: another migration has not ended in time; it names the session.
    """
    for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
        connection.execute(text(f"SET LOCAL {name} = 0"))
    connection.execute(text(f"SET LOCAL lock_timeout = {int(LOCK_S * 1000)}"))
    deadline = time.monotonic() + OTHER_S
    while not connection.execute(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": _KEY}).scalar():
        if time.monotonic() > deadline:
            raise InfraError(
                f"another migration of the database {safe_url(url)} has not ended within {limit(OTHER_S)}: "
                f"{_sessions(connection, _MIGRATION, key=_KEY)}",
                hint="repeat the command when it has ended, or end it: SELECT pg_terminate_backend(PID)",
            )
        time.sleep(_POLL_S)


def _sessions(connection: Connection, query: str, **values: object) -> str:
    """Return the sessions of a query in words; '' for none. Those of other users may be hidden in part."""
    sessions = []
    for pid, user, application, state, began, _ in connection.execute(text(query), values):
        words = [f"user {user}", application or "", state or "", f"query since {began} UTC" if began else ""]
        sessions.append(f"pid {pid} ({', '.join(filter(None, words))})")
    return ", ".join(sessions)
