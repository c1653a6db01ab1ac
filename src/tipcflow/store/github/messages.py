"""Outgoing outbox: what GitHub has to show. A row is sent until GitHub has its newest revision.

Digests of teams and weekly reports, which GitHub does not get, are recorded as rows without a repository.
"""

from typing import Any

from sqlalchemy import Insert, RowMapping, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from tipcflow.domain import Frozen
from tipcflow.store.base import Part, clock
from tipcflow.store.schema import messages

# Updates of one check run or comment are at least this far apart; a final one is sent at once.
COALESCE_S = 15.0
# Longer than the longest sending of a batch. A row whose sender died is sent again after this time.
HOLD_S = 300.0


class Message(Frozen):
    """One thing that GitHub shows, or a report that was sent.

    Attributes:
        repository: '' for messages that GitHub does not get.
        kind: check, comment, reaction, reply or issue; digest or weekly report without a repository.
        subject: which one.
        rank: order of contents of one subject; a lower one is out of date.
        revision: counts the contents.
        tries: failed attempts since the last success; `error` is the last failure.
    """

    repository: str
    kind: str
    subject: str
    rank: float = 0.0
    body: dict[str, Any]
    revision: int = 1
    sent_revision: int = 0
    created_at: float = 0.0
    due_at: float = 0.0
    sent_at: float | None = None
    tries: int = 0
    error: str = ""


class Messages(Part):
    """Table messages."""

    def put(
        self,
        repository: str,
        kind: str,
        subject: str,
        body: dict[str, Any],
        *,
        rank: float = 0.0,
        final: bool = True,
    ) -> bool:
        """Set the content of a message; False if GitHub has it, it already waits, or a newer one exists.

        Args:
            final: send it at once; otherwise at least `COALESCE_S` after the last one.
        """
        with self._write() as connection:
            conditions = _conditions(repository, kind, subject)
            old = connection.execute(select(messages).where(*conditions).with_for_update()).mappings().first()
            now = clock(connection)
            if old is None:
                row = Message(repository=repository, kind=kind, subject=subject, body=body, rank=rank)
                connection.execute(_new(row, now))
                return True
            if rank < old["rank"] or body == old["body"]:
                return False
            due = old["due_at"] if old["tries"] else now if final else max(now, (old["sent_at"] or 0) + COALESCE_S)
            values = {"body": body, "rank": rank, "revision": old["revision"] + 1, "due_at": due}
            connection.execute(update(messages).where(*conditions).values(values))
            return True

    def take(self, *, limit: int = 50, hold_s: float = HOLD_S) -> list[Message]:
        """Take messages that are due, oldest first; other callers do not get them for `hold_s`."""
        with self._write() as connection:
            now = clock(connection)
            due = (
                select(messages)
                .where(messages.c.sent_revision < messages.c.revision, messages.c.due_at <= now)
                .order_by(messages.c.created_at, messages.c.kind, messages.c.subject)
                .limit(limit)
                .with_for_update(skip_locked=True)
            )
            batch = [_message(row) for row in connection.execute(due).mappings()]
            for message in batch:
                conditions = _conditions(message.repository, message.kind, message.subject)
                connection.execute(update(messages).where(*conditions).values(due_at=now + hold_s))
            return batch

    def sent(self, message: Message) -> None:
        """Record that GitHub has this revision; a newer content is due after `COALESCE_S`."""
        with self._write() as connection:
            now = clock(connection)
            values = {
                "sent_revision": message.revision,
                "sent_at": now,
                "due_at": now + COALESCE_S,
                "tries": 0,
                "error": "",
            }
            conditions = _conditions(message.repository, message.kind, message.subject)
            connection.execute(update(messages).where(*conditions).values(values))

    def failed(self, message: Message, error: str, *, wait_s: float) -> None:
        """Record a failure; the message is due again after `wait_s`."""
        with self._write() as connection:
            values = {"tries": messages.c.tries + 1, "error": error, "due_at": clock(connection) + wait_s}
            conditions = _conditions(message.repository, message.kind, message.subject)
            connection.execute(update(messages).where(*conditions).values(values))

    def postpone(self, message: Message, *, wait_s: float) -> None:
        """Give a taken message back unsent."""
        with self._write() as connection:
            conditions = _conditions(message.repository, message.kind, message.subject)
            connection.execute(update(messages).where(*conditions).values(due_at=clock(connection) + wait_s))

    def record(self, kind: str, subject: str, body: dict[str, Any]) -> bool:
        """Record a message that is not sent to GitHub, before or after it is sent.

        Returns:
            Whether it is new, or its body differs from the recorded one. Of concurrent callers only one gets True.
        """
        with self._write() as connection:
            now = clock(connection)
            row = Message(repository="", kind=kind, subject=subject, body=body, sent_revision=1, sent_at=now)
            table: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
            new = table.insert(messages).values(row.model_dump() | {"created_at": now, "due_at": now})
            changed = new.on_conflict_do_update(
                index_elements=["repository", "kind", "subject"],
                set_={name: new.excluded[name] for name in ("body", "sent_at")},
                where=messages.c.body != new.excluded.body,
            )
            return connection.execute(changed.returning(messages.c.subject)).first() is not None

    def withdraw(self, kind: str, subject: str) -> None:
        """Remove a recorded message: it was not sent."""
        with self._write() as connection:
            connection.execute(delete(messages).where(*_conditions("", kind, subject)))

    def give_up(self, message: Message, error: str) -> None:
        """Stop sending this revision: GitHub refuses it for good. A new content is sent."""
        with self._write() as connection:
            values = {"sent_revision": message.revision, "tries": 0, "error": error}
            conditions = _conditions(message.repository, message.kind, message.subject)
            connection.execute(update(messages).where(*conditions).values(values))

    def get(self, repository: str, kind: str, subject: str) -> Message | None:
        """Return one message, None if there is none."""
        with self._read() as connection:
            row = (
                connection.execute(select(messages).where(*_conditions(repository, kind, subject)))
                .mappings()
                .first()
            )
            return None if row is None else _message(row)

    def of_kind(self, repository: str, kind: str) -> list[Message]:
        """Return the messages of one kind to a repository, sent ones too."""
        query = select(messages).where(messages.c.repository == repository, messages.c.kind == kind)
        with self._read() as connection:
            return [_message(row) for row in connection.execute(query.order_by(messages.c.created_at)).mappings()]

    def below(self, kind: str, rank: float) -> list[Message]:
        """Return the messages of one kind to all repositories whose content has a lower rank, oldest first."""
        query = select(messages).where(messages.c.kind == kind, messages.c.rank < rank)
        with self._read() as connection:
            return [_message(row) for row in connection.execute(query.order_by(messages.c.created_at)).mappings()]

    def due(self) -> bool:
        """Whether a message is to be sent now."""
        with self._read() as connection:
            query = select(func.count()).where(
                messages.c.sent_revision < messages.c.revision, messages.c.due_at <= clock(connection)
            )
            return bool(connection.execute(query.select_from(messages)).scalar_one())

    def forget(self, days: float) -> int:
        """Remove messages that GitHub has had for `days`; return their number."""
        with self._write() as connection:
            old = messages.c.sent_at < clock(connection) - days * 86400
            sent = messages.c.sent_revision == messages.c.revision
            return connection.execute(delete(messages).where(old, sent)).rowcount

    def waiting(self) -> list[Message]:
        """Return the messages whose newest revision GitHub does not have, oldest first."""
        query = select(messages).where(messages.c.sent_revision < messages.c.revision)
        with self._read() as connection:
            return [_message(row) for row in connection.execute(query.order_by(messages.c.created_at)).mappings()]


def _new(row: Message, now: float) -> Insert:
    return insert(messages).values(row.model_dump() | {"created_at": now, "due_at": now})


def _conditions(repository: str, kind: str, subject: str) -> list[Any]:
    return [messages.c.repository == repository, messages.c.kind == kind, messages.c.subject == subject]


def _message(row: RowMapping) -> Message:
    return Message(**{name: row[name] for name in Message.model_fields})
