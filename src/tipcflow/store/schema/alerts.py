"""Tables alerts and alert_events. Rows are never removed: the history of a regression stays known."""

from sqlalchemy import CheckConstraint, Column, Double, ForeignKeyConstraint, Index, Integer, Table

from tipcflow.store.schema.tables import metadata
from tipcflow.store.types import JsonText, Reason, Words

_LINE = ("chain", "mode", "environment")

alerts = Table(
    "alerts",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    *(Column(name, Integer, nullable=False) for name in ("schema_version", "cause")),
    *(Column(name, Words, nullable=False) for name in (*_LINE, "suite", "state", "owner")),
    *(Column(name, Words, nullable=False) for name in ("first", "last_good", "newest", "gone")),
    *(Column(name, JsonText, nullable=False) for name in ("suspects", "metrics")),
    *(Column(name, Double, nullable=False) for name in ("state_at", "first_at", "newest_at")),
    Column("gone_at", Double, nullable=True),
    Column("runs", Integer, nullable=False),
    CheckConstraint("(gone_at IS NULL) = (gone = '')", name="gone"),
    CheckConstraint("runs >= 1 AND cause >= 1 AND cause <= number", name="counts"),
    ForeignKeyConstraint(["first"], ["runs.id"]),
    ForeignKeyConstraint(["newest"], ["runs.id"]),
    Index(None, *_LINE),
    Index(None, "state"),
    Index(None, "newest_at"),
)

alert_events = Table(
    "alert_events",
    metadata,
    *(Column(name, Integer, primary_key=True, autoincrement=False) for name in ("alert", "ordinal")),
    Column("at", Double, nullable=False),
    *(Column(name, Words, nullable=False) for name in ("who", "kind", "run")),
    Column("text", Reason, nullable=False),
    CheckConstraint("who <> ''", name="who"),
    ForeignKeyConstraint(["alert"], ["alerts.number"]),
    Index(None, "run"),
)
