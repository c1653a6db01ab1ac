"""The store: the only access of other packages to the database."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from sqlalchemy import Engine

from tipcflow.config.settings import safe_url, settings
from tipcflow.store import migrate
from tipcflow.store.audit import Audit
from tipcflow.store.base import Database
from tipcflow.store.baselines import Baselines
from tipcflow.store.engine import AWAY_S, UnreachableError, make_engine, reachable
from tipcflow.store.github.attempts import PullAttempts
from tipcflow.store.github.messages import Messages
from tipcflow.store.leases.leases import Leases
from tipcflow.store.leases.locks import Locks
from tipcflow.store.leases.queue import LeaseQueue
from tipcflow.store.outbox import Outbox
from tipcflow.store.quarantines import Quarantines
from tipcflow.store.queries.ab_results import AbResults
from tipcflow.store.queries.alerts import Alerts
from tipcflow.store.queries.check_history import CheckHistory
from tipcflow.store.queries.coverage import CoverageQueries
from tipcflow.store.queries.history import History
from tipcflow.store.queries.matrix import MatrixQueries
from tipcflow.store.queries.node_use import NodeUse
from tipcflow.store.queries.numbers import Numbers
from tipcflow.store.queries.opened import OpenedFiles
from tipcflow.store.queries.repeats import Repeats
from tipcflow.store.queries.states import States
from tipcflow.store.recorded import Recorded
from tipcflow.store.results.checks import Checks
from tipcflow.store.results.documents import Documents
from tipcflow.store.results.node_histories import NodeHistories
from tipcflow.store.results.nodes import Nodes
from tipcflow.store.run.attempts import Attempts
from tipcflow.store.run.members import Members
from tipcflow.store.run.plans import Plans
from tipcflow.store.run.runs import Runs
from tipcflow.store.run.steps import Steps
from tipcflow.store.series.bulk import SeriesPart
from tipcflow.store.series.frames import Frames
from tipcflow.store.series.measurements import Measurements
from tipcflow.store.series.rollup import Rollup
from tipcflow.store.series.summaries import Summaries
from tipcflow.store.tracked_alerts import TrackedAlerts

# How long a task waits for the rest of an upgrade; Airflow retries it twice, which makes a quarter of an hour.
SCHEMA_WAIT_S = 300.0
_POLL_S = 5.0
_KEPT: dict[str, Engine] = {}


class Store:
    """The metrics database, SQLite or PostgreSQL, in parts by what they store.

    Safe to share between threads, not across a fork.
    """

    def __init__(self, engine: Engine, url: str) -> None:
        self.url = safe_url(url)
        self.database = database = Database(engine)
        self.runs, self.plans = Runs(database), Plans(database)
        self.steps, self.attempts, self.members = Steps(database), Attempts(database), Members(database)
        self.nodes, self.checks, self.documents = Nodes(database), Checks(database), Documents(database)
        self.series, self.measurements = SeriesPart(database), Measurements(database)
        self.summaries, self.rollup = Summaries(database), Rollup(database)
        self.numbers = Numbers(database)
        self.frames = Frames(self.steps, self.measurements, self.summaries)
        self.baselines, self.queue = Baselines(database), LeaseQueue(database)
        self.leases, self.outbox = Leases(database, self.queue), Outbox(database)
        self.recorded, self.states, self.repeats = Recorded(database), States(database), Repeats(database)
        self.coverage, self.alerts = CoverageQueries(database), Alerts(database)
        self.matrix, self.node_use = MatrixQueries(database), NodeUse(database)
        self.opened, self.node_histories = OpenedFiles(database), NodeHistories(database)
        self.quarantines, self.check_history = Quarantines(database), CheckHistory(database)
        self.ab_results, self.tracked_alerts = AbResults(database), TrackedAlerts(database)
        self.pulls, self.messages = PullAttempts(database), Messages(database)
        self.locks, self.audit = Locks(database), Audit(database)
        self.history = History(
            database,
            runs=self.runs,
            plans=self.plans,
            steps=self.steps,
            attempts=self.attempts,
            nodes=self.nodes,
            documents=self.documents,
        )

    def now(self) -> float:
        """Return the time by the database's clock, seconds since the epoch."""
        return self.database.now()

    @classmethod
    def open(cls, url: str | None = None, *, migrate: bool = True) -> Self:
        """Open a database at once, as a command does.

        A server's older database is never upgraded here: other processes use it. `tipcflow db upgrade` does that.

        Args:
            url: of SQLite or PostgreSQL; None for the one that the settings name.
            migrate: bring an empty database, or an older SQLite file, up to date first; otherwise reject it.

        Raises:
            WrongSchemaError: the database is newer than this code, or older and not upgraded.
            ConfigError: when the URL is wrong.
            InfraError: when it cannot be reached.
        """
        return cls._open(url, lambda engine, name: _bring_up_to_date(engine, name, allowed=migrate))

    @classmethod
    def open_in_task(cls, wait_s: float = SCHEMA_WAIT_S) -> Self:
        """Open the configured database from a process that may run during or before an upgrade.

        An empty database gets its tables. An older or newer one is left alone, and waited for, and so is a server
        that does not respond.

        Raises:
            WrongSchemaError: it still has another schema after `wait_s`; a later call may succeed.
            ConfigError, InfraError: as `open`.
        """
        return cls._open(None, lambda engine, name: await_schema(engine, name, wait_s))

    @classmethod
    def _open(cls, url: str | None, check: Callable[[Engine, str], None]) -> Self:
        url = settings().database_url if url is None else url
        engine = _KEPT.get(url) or make_engine(url)
        try:
            check(engine, url)
        except BaseException:
            engine.dispose()
            raise
        store = cls(engine, url)
        store.database.remember_file()
        return store

    def close(self) -> None:
        """Close all connections."""
        self.database.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def keep_engine(url: str, engine: Engine) -> None:
    """Use this engine for every store of that URL from now on, here and in processes that are forked from here.

    Args:
        engine: without a connection.
    """
    _KEPT[url] = engine


def _bring_up_to_date(engine: Engine, url: str, *, allowed: bool) -> None:
    with reachable(url):
        revision = migrate.engine_revision(engine)
    if revision == migrate.HEAD:
        return
    migrate.refuse_newer(url, revision)
    if not allowed or (revision and engine.dialect.name != "sqlite"):
        raise migrate.outdated(url, revision)
    migrate.upgrade(url)


def await_schema(engine: Engine, url: str, seconds: float) -> None:
    """Wait until the database has this code's schema, as `Store.open_in_task` does."""
    # Not tenacity: an old schema and an unreachable server have different deadlines in the same loop.
    deadline, away_until = time.monotonic() + seconds, time.monotonic() + AWAY_S
    while True:
        try:
            with reachable(url):
                revision = migrate.engine_revision(engine)
        except UnreachableError:
            # A server that restarts: the other tasks of the run have used it.
            if engine.dialect.name == "sqlite" or time.monotonic() >= min(deadline, away_until):
                raise
            time.sleep(min(_POLL_S, max(0.0, deadline - time.monotonic())))
            continue
        if revision == migrate.HEAD:
            return
        if not revision:
            migrate.upgrade(url)
            return
        if time.monotonic() >= deadline:
            migrate.refuse_newer(url, revision)
            raise migrate.outdated(url, revision)
        time.sleep(min(_POLL_S, max(0.0, deadline - time.monotonic())))
