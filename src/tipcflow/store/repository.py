"""The one class through which all other rooms reach the database."""

from types import TracebackType
from typing import Self

from sqlalchemy import Engine

from tipcflow.config.settings import safe_url, settings
from tipcflow.domain import ConfigError
from tipcflow.store import migrate
from tipcflow.store.baselines import BaselinesMixin
from tipcflow.store.engine import make_engine, reachable
from tipcflow.store.finished import FinishedMixin
from tipcflow.store.frames import FramesMixin
from tipcflow.store.history import HistoryMixin
from tipcflow.store.leases import LeasesMixin
from tipcflow.store.members import MembersMixin
from tipcflow.store.rollup import RollupMixin
from tipcflow.store.series import SeriesMixin

_KEPT: dict[str, Engine] = {}


class Store(
    HistoryMixin,
    FramesMixin,
    LeasesMixin,
    BaselinesMixin,
    MembersMixin,
    FinishedMixin,
    RollupMixin,
    SeriesMixin,
):
    """The metrics database, SQLite or PostgreSQL. Safe to share between threads, not across a fork."""

    def __init__(self, engine: Engine, url: str) -> None:
        self._engine = engine
        self.url = safe_url(url)

    @classmethod
    def open(cls, url: str | None = None, *, migrate: bool = True) -> Self:
        """Open a database.

        Args:
            url: of SQLite or PostgreSQL; None for the one that the settings name.
            migrate: bring an empty or older database up to date first; else refuse it.

        Raises:
            ConfigError: when the URL is wrong, or the database is newer than this code, or older and not migrated.
            InfraError: when it cannot be reached.
        """
        url = settings().database_url if url is None else url
        engine = _KEPT.get(url) or make_engine(url)
        try:
            _bring_up_to_date(engine, url, allowed=migrate)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, url)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

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
    if not allowed:
        raise ConfigError(
            f"the database {safe_url(url)} is not up to date",
            found=f"schema {revision or 'none'}",
            expected=f"schema {migrate.HEAD}",
            hint="run `tipcflow db upgrade`",
        )
    migrate.upgrade(url)
