"""Table line_states: the newest run with a verdict of each line, kept up to date by every write that changes it.

A *line* is a chain in one mode in one environment class, whose runs are comparable. Pages read the state of all
lines, and a search for the newest run of each line takes longer than everything else on the page.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, func, select, text

from tipcflow.domain import Status
from tipcflow.domain.run_documents import MergeBaseDocument
from tipcflow.domain.triggers import SIDE_RUNS
from tipcflow.store.base import upsert
from tipcflow.store.schema import documents, line_states, runs

GREEN = (Status.PASS, Status.IMPROVEMENT)
_OF_RUN = ("suite", "cluster", "status", "framework", "created_at")
# Columns of a run on which the rows depend.
DECISIVE = frozenset({"chain", "mode", "environment", "trigger", *_OF_RUN})
# First key of these locks, so that they never meet the advisory locks of other parts; 'line' as a number.
_CLASS = 0x6C696E65


class LineKey(NamedTuple):
    """What the runs of a line have in common."""

    chain: str
    mode: str
    environment: str


def is_state(table: Any) -> list[ColumnElement[bool]]:
    """Return the conditions of a run that may be the state of its line.

    Side runs (`SIDE_RUNS`), cancelled runs and runs of changes (with a merge base) are not the state of a chain.
    """
    is_change = exists().where(documents.c.run == table.c.id, documents.c.name == MergeBaseDocument.NAME)
    return [
        table.c.status.is_not(None),
        table.c.status != Status.CANCELLED.value,
        table.c.trigger.not_in(SIDE_RUNS),
        ~is_change,
    ]


def key_of(connection: Connection, run_id: str) -> LineKey | None:
    """Return the line of a run, None for an unknown run."""
    row = connection.execute(
        select(*(runs.c[name] for name in LineKey._fields)).where(runs.c.id == run_id)
    ).first()
    return LineKey(*row) if row else None


def refresh(connection: Connection, keys: Iterable[LineKey | None]) -> None:
    """Find the state of lines again, after runs of them have changed in this transaction."""
    for key in sorted({key for key in keys if key is not None}):
        _lock(connection, key)
        own = and_(*(runs.c[name] == value for name, value in key._asdict().items()), *is_state(runs))
        state = select(runs.c.id.label("run"), *(runs.c[name] for name in _OF_RUN)).where(own)
        newest = state.order_by(runs.c.created_at.desc(), runs.c.id.desc()).limit(1)
        row = connection.execute(newest).mappings().first()
        if row is None:
            same = and_(*(line_states.c[name] == value for name, value in key._asdict().items()))
            connection.execute(delete(line_states).where(same))
            continue
        accepted = select(func.count()).select_from(runs).where(own, runs.c.status.in_(GREEN))
        counted = {"accepted": connection.execute(accepted).scalar_one()}
        connection.execute(upsert(connection, line_states), key._asdict() | dict(row) | counted)


def _lock(connection: Connection, key: LineKey) -> None:
    """Wait for transactions that refresh the line; the following statements see what they wrote.

    SQLite has only one transaction that writes.
    """
    if connection.dialect.name == "postgresql":
        wanted = text("SELECT pg_advisory_xact_lock(:kind, hashtext(:name))")
        connection.execute(wanted, {"kind": _CLASS, "name": "\n".join(key)})
