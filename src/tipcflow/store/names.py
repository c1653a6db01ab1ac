"""Names for shell completion, read from a database as it is; for SQLite without importing SQLAlchemy."""

import sqlite3
from contextlib import closing
from urllib.parse import quote

_QUERY = "SELECT id, chain, status FROM runs ORDER BY created_at DESC LIMIT {limit:d}"
# A completion that takes longer is worse than none.
_WAIT_S = 1.0
_LIMITS = {"connect_timeout": 2, "options": "-c statement_timeout=2000"}


def newest_runs(url: str, *, limit: int) -> list[tuple[str, str, str]]:
    """Return (id, chain, status) of the newest runs; the status of a run without one is ''.

    Nothing is created or migrated. Errors of the database's driver are raised as they are.

    Args:
        url: of SQLite or PostgreSQL.
        limit: maximum number of runs.
    """
    statement = _QUERY.format(limit=limit)
    if url.startswith("sqlite"):
        path = url.partition("///")[2].partition("?")[0]
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=_WAIT_S)) as file:
            rows = file.execute(statement).fetchall()
    else:
        from sqlalchemy import create_engine

        from tipcflow.store.engine import normal_url

        engine = create_engine(normal_url(url), connect_args=_LIMITS)
        try:
            with engine.connect() as connection:
                rows = [tuple(row) for row in connection.exec_driver_sql(statement)]
        finally:
            engine.dispose()
    return [(str(run), str(chain), str(status or "")) for run, chain, status in rows]
