"""Outbox of verified webhook deliveries: the webhook adds a row, Airflow handles it later, once."""

from collections.abc import Collection
from typing import Any, Self

from sqlalchemy import Connection, Insert, RowMapping, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from tipcflow.domain import Frozen
from tipcflow.store.base import Database, Part, clock
from tipcflow.store.engine import make_engine, reachable
from tipcflow.store.migrate import HEAD, engine_revision, outdated, refuse_newer
from tipcflow.store.schema import outbox

# Longer than the longest handling of a row: fetching a pull request's files from a slow GitHub.
HOLD_S = 300.0
# Event data is kept this long after it was handled.
BODY_DAYS = 30.0
# Rows without a body are kept this long to detect replays.
REPLAY_DAYS = 400.0


class OutboxRow(Frozen):
    """One delivery.

    Attributes:
        delivery: GitHub's id of the delivery.
        body_sha256: of the raw body.
        connection: Airflow connection whose secret signed it.
        repository: `owner/name`, '' for events of the App.
        event: GitHub's name of the event.
        body: the reduced event; None once it was removed.
        received_at: seconds since the epoch.
        takes: how often a process took the row.
        done_at: None while it is not handled.
        outcome: what was done.
    """

    delivery: str
    body_sha256: str
    connection: str
    repository: str
    event: str
    body: dict[str, Any] | None
    received_at: float
    takes: int = 0
    done_at: float | None = None
    outcome: str = ""


class Outbox(Part):
    """Table outbox."""

    @classmethod
    def for_webhook(cls, url: str) -> Self:
        """Open the outbox in a process that must respond quickly: it does not wait for an unavailable server.

        Raises:
            ConfigError: the database is older or newer than this code, or empty.
            InfraError: it cannot be reached.
        """
        # The transactions of an api-server's role only read by default (docker/postgres_init.sh).
        engine = make_engine(url).execution_options(tipcflow_waits=False, postgresql_readonly=False)
        with reachable(url):
            revision = engine_revision(engine)
        refuse_newer(url, revision)
        if revision != HEAD:
            raise outdated(url, revision)
        return cls(Database(engine))

    def add(
        self,
        *,
        delivery: str,
        body_sha256: str,
        connection: str,
        repository: str,
        event: str,
        body: dict[str, Any],
    ) -> bool:
        """Add a delivery; False if it, or one with the same body, was received before."""
        with self._write() as session:
            row = {
                "delivery": delivery,
                "body_sha256": body_sha256,
                "connection": connection,
                "repository": repository,
                "event": event,
                "body": body,
                "received_at": clock(session),
                "owner": "",
                "taken_until": 0.0,
                "takes": 0,
                "outcome": "",
            }
            once = _insert_once(session).values(row).returning(outbox.c.delivery)
            return session.execute(once).first() is not None

    def take(self, owner: str, *, limit: int = 50, hold_s: float = HOLD_S) -> list[OutboxRow]:
        """Take unhandled rows, oldest first. A row whose holder did not finish it in time is taken again.

        Args:
            owner: the process, for messages.
        """
        with self._write() as connection:
            now = clock(connection)
            free = (
                select(outbox)
                .where(outbox.c.done_at.is_(None), outbox.c.taken_until <= now)
                .order_by(outbox.c.received_at, outbox.c.delivery)
                .limit(limit)
                .with_for_update(skip_locked=True)
            )
            rows = [_row(row) for row in connection.execute(free).mappings()]
            taken = outbox.c.delivery.in_([row.delivery for row in rows])
            held = {"owner": owner, "taken_until": now + hold_s, "takes": outbox.c.takes + 1}
            connection.execute(update(outbox).where(taken).values(held))
            return [row.model_copy(update={"takes": row.takes + 1}) for row in rows]

    def done(self, delivery: str, outcome: str) -> bool:
        """Mark a row as handled; False if it already was."""
        conditions = (outbox.c.delivery == delivery, outbox.c.done_at.is_(None))
        with self._write() as connection:
            values = {"done_at": clock(connection), "outcome": outcome}
            return connection.execute(update(outbox).where(*conditions).values(values)).rowcount == 1

    def leave(self, delivery: str, outcome: str, *, wait_s: float) -> None:
        """Let another process take an unhandled row after `wait_s`, because handling it failed."""
        conditions = (outbox.c.delivery == delivery, outbox.c.done_at.is_(None))
        with self._write() as connection:
            values = {"taken_until": clock(connection) + wait_s, "outcome": outcome}
            connection.execute(update(outbox).where(*conditions).values(values))

    def rows(self, *, repository: str = "", limit: int = 100) -> list[OutboxRow]:
        """Return rows, newest first."""
        query = select(outbox).order_by(outbox.c.received_at.desc(), outbox.c.delivery).limit(limit)
        if repository:
            query = query.where(outbox.c.repository == repository)
        with self._read() as connection:
            return [_row(row) for row in connection.execute(query).mappings()]

    def waiting(self) -> int:
        """Return the number of unhandled rows."""
        query = select(func.count()).select_from(outbox).where(outbox.c.done_at.is_(None))
        with self._read() as connection:
            return int(connection.execute(query).scalar_one())

    def ready(self) -> bool:
        """Whether a process may take a row now."""
        with self._read() as connection:
            free = (outbox.c.done_at.is_(None), outbox.c.taken_until <= clock(connection))
            return connection.execute(select(outbox.c.delivery).where(*free).limit(1)).first() is not None

    def known(self, deliveries: Collection[str]) -> set[str]:
        """Return those of the deliveries that are stored."""
        with self._read() as connection:
            query = select(outbox.c.delivery).where(outbox.c.delivery.in_(list(deliveries)))
            return set(connection.execute(query).scalars())

    def shorten(self, *, bodies_days: float | None = None, rows_days: float = REPLAY_DAYS) -> int:
        """Remove the bodies of rows handled long ago, and rows handled more than `rows_days` ago.

        Args:
            bodies_days: None means `BODY_DAYS`.

        Returns:
            The number of removed rows.
        """
        with self._write() as connection:
            now = clock(connection)
            kept_days = BODY_DAYS if bodies_days is None else bodies_days
            old = outbox.c.done_at < now - kept_days * 86400
            connection.execute(update(outbox).where(old, outbox.c.body.is_not(None)).values(body=None))
            oldest = outbox.c.done_at < now - rows_days * 86400
            return connection.execute(delete(outbox).where(oldest)).rowcount


def _row(row: RowMapping) -> OutboxRow:
    return OutboxRow(**{name: row[name] for name in OutboxRow.model_fields})


def _insert_once(connection: Connection) -> Insert:
    if connection.dialect.name == "postgresql":
        return postgresql.insert(outbox).on_conflict_do_nothing()
    return sqlite.insert(outbox).on_conflict_do_nothing()
