"""The store of a triggerer's polls: connections are kept, because a login costs more than the query of a poll."""

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from tipcflow.config.settings import settings
from tipcflow.store.engine import UnreachableError, make_poll_engine, normal_url
from tipcflow.store.repository import Store, await_schema

# How often the schema is compared with this code's: another version may upgrade the database meanwhile.
SCHEMA_EVERY_S = 60.0
# SQLSTATEs of a statement that waited too long: its connection can be used again.
_TOO_LONG = frozenset(("55P03", "57014"))


class _Pool:
    """A store of one URL, and when its schema is checked next, in seconds of the monotonic clock."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store = Store(make_poll_engine(url), url)
        self._check_at = -math.inf

    def check_schema(self) -> None:
        """Check the schema if it is due."""
        now = time.monotonic()
        if now >= self._check_at:
            await_schema(self.store.database.engine, self.url, 0.0)
            self._check_at = now + SCHEMA_EVERY_S


_POOLS: dict[str, _Pool] = {}
_INHERITED: list[_Pool] = []


@contextmanager
def poll_store() -> Iterator[Store]:
    """Yield a store of the configured database for one poll.

    All threads of the process share a few connections to a PostgreSQL server, whose waits are shorter than the
    time that a trigger waits for its poll. Each is tested before use, so that a poll after a restart of the server
    connects again; after an error of the database all are replaced. A SQLite file is opened for each poll.

    Raises:
        WrongSchemaError: the database has another schema; a later poll may succeed.
        InfraError, ConfigError: as `Store.open_in_task`.
        sqlalchemy.exc.TimeoutError: other polls used all connections for too long.
    """
    url = settings().database_url
    if normal_url(url).get_backend_name() == "sqlite":
        with Store.open_in_task(wait_s=0) as store:
            yield store
        return
    pool = _pool(url)
    try:
        pool.check_schema()
        yield pool.store
    except (DBAPIError, UnreachableError) as error:
        if getattr(getattr(error, "orig", None), "sqlstate", None) not in _TOO_LONG:
            _discard(pool)
        raise


def _pool(url: str) -> _Pool:
    for other in [pool for pool in list(_POOLS.values()) if pool.url != url]:
        _discard(other)
    # Threads that come here at once may make several, of which one is kept; the others have no connection yet.
    return _POOLS.get(url) or _POOLS.setdefault(url, _Pool(url))


def _discard(pool: _Pool) -> None:
    """Close its connections; those in use are closed after their poll."""
    if _POOLS.get(pool.url) is pool:
        _POOLS.pop(pool.url, None)
    pool.store.close()


def _after_fork() -> None:
    """Leave the connections to the parent: a child that used or closed one would break it for both."""
    _INHERITED.extend(_POOLS.values())
    _POOLS.clear()


os.register_at_fork(after_in_child=_after_fork)
