"""Read-only access to the metrics database, for the pages behind Airflow's login."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

from tipcflow.config.settings import safe_url
from tipcflow.domain import ConfigError, InfraError
from tipcflow.store import migrate
from tipcflow.store.engine import SERVER, normal_url, reachable
from tipcflow.store.queries.operation import OperationQueries
from tipcflow.store.queries.pages import Pages
from tipcflow.store.repository import Store

# Query timeout of the pages, seconds; the database then cancels the query.
WAIT_S = 10
# Pages of the database that each connection to a SQLite file keeps in memory.
_CACHE_KIB = 16 * 1024


class ReadonlyStore(Store):
    """A store whose connections cannot write.

    SQLite is opened with `mode=ro` and `query_only`; a connection is used again while its file is the same.
    PostgreSQL with `default_transaction_read_only=on` and a limit per statement.
    """

    def __init__(self, engine: Engine, url: str) -> None:
        super().__init__(engine, url)
        self.history.caches = False
        self.pages = Pages(self.database)
        self.operation = OperationQueries(self.database)

    @classmethod
    def of(cls, url: str) -> Self:
        """Return the store at that URL, without connecting.

        Raises:
            ConfigError: the URL is invalid.
        """
        parsed = normal_url(url)
        return cls(_sqlite(parsed) if parsed.get_backend_name() == "sqlite" else _postgresql(parsed), url)

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """Yield a store whose queries share one connection and see the same state of the database."""
        with self.database.read() as connection:
            store = type(self)(self.database.engine, self.url)
            store.database.share(connection)
            yield store

    def refuse_unusable(self) -> None:
        """Check whether the database exists and has this code's tables.

        Raises:
            ConfigError: the database is older or newer than this code.
            InfraError: the database does not exist yet, or cannot be reached or read.
        """
        where = self.database.engine.url
        if where.get_backend_name() == "sqlite" and not Path(where.database or "").is_file():
            raise InfraError(
                f"there is no metrics database yet at {where.database}",
                hint="the first run creates it, and so does `tipcflow db upgrade`; "
                "TIPCFLOW_DATABASE_URL and TIPCFLOW_HOME set its place",
            )
        with reachable(self.url):
            revision = migrate.engine_revision(self.database.engine)
        if revision == migrate.HEAD:
            return
        migrate.refuse_newer(self.url, revision)
        raise ConfigError(
            f"the database {self.url} is older than this tipcflow",
            found=f"schema {revision or 'none'}",
            expected=f"schema {migrate.HEAD}",
            hint="run `tipcflow db upgrade`",
        )


def _postgresql(url: URL) -> Engine:
    own = url.query.get("options", "")
    own_options = own if isinstance(own, str) else " ".join(own)
    # Compiling a query of many small searches takes longer than the query.
    limits = f"-c default_transaction_read_only=on -c statement_timeout={WAIT_S}s -c jit=off"
    options = f"{own_options} {limits}".strip()
    connect = {**SERVER, "connect_timeout": WAIT_S, "application_name": "tipcflow pages", "options": options}
    without = url.difference_update_query(["options"])
    engine = create_engine(without, pool_pre_ping=True, hide_parameters=True, connect_args=connect)
    return engine.execution_options(tipcflow_waits=False)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file, None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _sqlite(url: URL) -> Engine:
    if not url.database or url.database == ":memory:":
        raise ConfigError(
            "a database in memory cannot be shown",
            key="TIPCFLOW_DATABASE_URL",
            found=safe_url(str(url)),
            expected="sqlite:////absolute/path.db",
        )
    path = Path(url.database).absolute()

    def connect() -> sqlite3.Connection:
        # as_uri quotes the characters that would end a path in a URI: `?`, `#` and `%` in folder names
        return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=WAIT_S, check_same_thread=False)

    named = URL.create("sqlite", database=str(path))
    engine = create_engine(
        named, creator=connect, poolclass=QueuePool, max_overflow=-1, pool_use_lifo=True, hide_parameters=True
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # tipcflow issues BEGIN itself
        connection.execute("PRAGMA query_only=ON")
        connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        record.info["file"] = _identity(path)

    @event.listens_for(engine, "checkout")
    def _refuse_other_file(_: object, record: ConnectionPoolEntry, __: object) -> None:
        if record.info["file"] != _identity(path):
            raise DisconnectionError("the file was replaced")  # the pool then opens the new one

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine
