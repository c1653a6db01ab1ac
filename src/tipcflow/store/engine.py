"""Connections: one form of URL, one set of database settings, one way to start a transaction."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from tenacity import Retrying, retry_if_exception, retry_if_exception_type, stop_after_delay, wait_fixed

from tipcflow.config.settings import safe_url
from tipcflow.domain import ConfigError, InfraError

BUSY_S = 30.0
# Wait for a SQLite file that another process locks, for example during a copy.
LOCKED_S = 60.0
# How long a database that was reached before may be away, for example during a restart, before a run fails.
AWAY_S = 180.0
# A PostgreSQL server ends a transaction whose client is silent for IDLE_S, for example on a suspended machine.
# Waiting for its locks takes longer than that, so waiting clients continue. Migrations have no such limits.
IDLE_S = 120.0
LOCK_S = 180.0
STATEMENT_S = 600.0
# A connection that was lost without notice is detected after a minute.
SERVER = {
    "connect_timeout": int(BUSY_S),
    "application_name": "tipcflow",
    "keepalives": 1,
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 4,
    "tcp_user_timeout": 60_000,
}
# Polls of triggers: at most this many connections per process. A trigger gives up on its poll after a minute
# (`tipcflow_operators.triggers.waits`), whose thread must end then, too.
POLLS = 4
POLL_CONNECT_S, POLL_LOCK_S, POLL_STATEMENT_S = 10.0, 15.0, 20.0
_RETRY_S = 1.0
_ANSWERED: WeakSet[Engine] = WeakSet()
# File systems that several machines mount at once. Write-ahead logging needs memory that all users of the file
# share, which only processes of one machine do. On some, locks are not shared either, and object stores have none.
_SERVERS = "nfs nfs4 cifs smb3 smbfs afs coda fuse.sshfs fuse.rclone fuse.gvfsd-fuse"
_CLUSTERS = (
    "ceph fuse.ceph fuse.ceph-fuse lustre gpfs beegfs glusterfs fuse.glusterfs gfs2 ocfs2 pvfs2 panfs wekafs cvfs "
    "fuse.juicefs fuse.mfs fuse.seaweedfs fuse.cubefs fuse.alluxio-fuse fuse.daos"
)
_OBJECTS = "fuse.s3fs fuse.geesefs fuse.ossfs fuse.cosfs fuse.gcsfuse"
# Folders of a host in a virtual machine, which the host and other virtual machines change, too: the 9p server of
# QEMU grants every lock, and virtiofsd keeps the locks of each machine apart. A container whose root is one of
# these (Kata Containers) is refused, too: it does not differ from a shared folder.
_HOSTS = "9p virtiofs fakeowner vboxsf prl_fs fuse.vmhgfs-fuse fuse.osxfs fuse.grpcfuse"
NETWORK = frozenset(" ".join((_SERVERS, _CLUSTERS, _OBJECTS, _HOSTS)).split())
_DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg", "sqlite": "sqlite"}


def normal_url(url: str) -> URL:
    """Return the URL with the driver that tipcflow ships.

    Raises:
        ConfigError: not a URL of SQLite or PostgreSQL.
    """
    wrong = ConfigError(
        "not a database URL",
        key="TIPCFLOW_DATABASE_URL",
        found=safe_url(url),
        expected="sqlite:////absolute/path.db or postgresql://user@host/name",
    )
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise wrong from None  # the cause would print the password
    if parsed.drivername in _DRIVERS:
        return parsed.set(drivername=_DRIVERS[parsed.drivername])
    if parsed.drivername in _DRIVERS.values():
        return parsed
    raise wrong


def make_engine(url: str, *, foreign_keys: bool = True) -> Engine:
    """Create an engine without connecting; the folder of a SQLite file is created.

    Args:
        url: of SQLite or PostgreSQL.
        foreign_keys: False for migrations on SQLite, which cannot rebuild a referenced table.
    """
    parsed = normal_url(url)
    if parsed.get_backend_name() != "sqlite":
        engine = create_engine(parsed, pool_pre_ping=True, hide_parameters=True, connect_args=SERVER)
        event.listen(engine, "connect", _limit_waits)
        return engine
    if parsed.database and parsed.database != ":memory:":
        _make_folder(Path(parsed.database).parent, url)
        _refuse_network(Path(parsed.database), url)
    engine = create_engine(parsed, hide_parameters=True, connect_args={"timeout": LOCKED_S})

    @event.listens_for(engine, "connect")
    def _configure(connection: sqlite3.Connection, _: Any) -> None:
        connection.isolation_level = None  # this module issues BEGIN itself
        _set_wal(connection)
        connection.execute(f"PRAGMA foreign_keys={'ON' if foreign_keys else 'OFF'}")
        connection.execute("PRAGMA synchronous=NORMAL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("tipcflow_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def make_poll_engine(url: str) -> Engine:
    """Create an engine for short queries of a process that polls for many triggers, without connecting.

    It has few connections and short limits, and does not wait for an unavailable server.

    Args:
        url: of PostgreSQL.
    """
    limits = {"connect_timeout": int(POLL_CONNECT_S), "tcp_user_timeout": int(POLL_STATEMENT_S * 1000)}
    engine = create_engine(
        normal_url(url),
        pool_size=POLLS,
        max_overflow=0,
        pool_timeout=POLL_CONNECT_S,
        pool_pre_ping=True,
        pool_use_lifo=True,
        hide_parameters=True,
        connect_args={**SERVER, **limits},
    )
    event.listen(engine, "connect", _limit_polls)
    return engine.execution_options(tipcflow_waits=False)


def _limit_waits(connection: Any, _: Any) -> None:
    """Limit the wait of every statement: for locks, and for a frozen client that holds one."""
    _limit(connection, lock_s=LOCK_S, statement_s=STATEMENT_S)


def _limit_polls(connection: Any, _: Any) -> None:
    _limit(connection, lock_s=POLL_LOCK_S, statement_s=POLL_STATEMENT_S)


def _limit(connection: Any, *, lock_s: float, statement_s: float) -> None:
    """Set the limits by statements, because connection poolers do not pass them as connection options."""
    limits = {
        "idle_in_transaction_session_timeout": IDLE_S,
        "lock_timeout": lock_s,
        "statement_timeout": statement_s,
    }
    for name, seconds in limits.items():
        connection.execute(f"SET {name} = {int(seconds * 1000)}")
    connection.commit()


def _make_folder(folder: Path, url: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfraError(f"cannot create the folder of the database {safe_url(url)}: {error}") from error


def _refuse_network(file: Path, url: str) -> None:
    """Reject a SQLite file on a shared file system: its locks and shared memory work on one machine only.

    SQLite follows a symbolic link to the file, and a container may mount the file itself.

    Raises:
        ConfigError: names the file system.
    """
    kind = file_system(Path(os.path.realpath(file)))
    if kind in NETWORK:
        raise ConfigError(
            f"the SQLite database {safe_url(url)} is on a shared file system, where it would be damaged",
            key="TIPCFLOW_DATABASE_URL",
            found=kind,
            expected="a file on a local disk, or postgresql://user@host/name",
        )


def file_system(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """Return the type of the file system of a file or folder, '' if unknown."""
    name, longest = "", -1
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        _, place, kind, *_ = [*line.split(), "", "", ""]
        place = place.replace("\\040", " ")  # a space is written as \040
        if path.is_relative_to(place) and len(place) >= longest:  # the last one mounted there counts
            name, longest = kind, len(place)
    return name


def _set_wal(connection: sqlite3.Connection) -> None:
    """Enable write-ahead logging; SQLite itself does not retry if two processes do so concurrently."""
    retrying = Retrying(
        retry=retry_if_exception_type(sqlite3.OperationalError),
        wait=wait_fixed(0.02),
        stop=stop_after_delay(BUSY_S),
        reraise=True,
    )
    retrying(connection.execute, "PRAGMA journal_mode=WAL")


def connected(engine: Engine) -> Connection:
    """Return a connection; wait for an unavailable server if this engine has reached it before.

    Pages do not wait, to keep requests short (option `tipcflow_waits`).
    """
    if engine.dialect.name == "sqlite" or not engine.get_execution_options().get("tipcflow_waits", True):
        return engine.connect()
    retrying = Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, OperationalError) and engine in _ANSWERED),
        wait=wait_fixed(_RETRY_S),
        stop=stop_after_delay(AWAY_S),
        reraise=True,
    )
    connection = retrying(engine.connect)
    _ANSWERED.add(engine)
    return connection


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Open a connection whose statements all see one snapshot."""
    with connected(engine) as connection:
        if engine.dialect.name == "postgresql":
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Open one transaction; on SQLite it holds the write lock from its start, so it never fails half-way."""
    with connected(engine) as connection:
        connection = connection.execution_options(tipcflow_write=True)
        with connection.begin():
            yield connection


class UnreachableError(InfraError):
    """A database that cannot be opened now; its server may be back later."""


@contextmanager
def reachable(url: str) -> Iterator[None]:
    """Convert driver errors of an unusable database to a clear message without its password."""
    try:
        yield
    except DBAPIError as error:
        reason = " ".join(str(error.orig).split())
        raise UnreachableError(
            f"cannot use the database {safe_url(url)}: {reason}",
            hint="TIPCFLOW_DATABASE_URL selects the database",
        ) from None
