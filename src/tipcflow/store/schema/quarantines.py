"""Table quarantines. Rows are never removed: who quarantined and released what, when and why, stays known."""

from sqlalchemy import CheckConstraint, Column, Double, ForeignKeyConstraint, Index, Integer, Table

from tipcflow.store.schema.tables import metadata
from tipcflow.store.types import JsonText, Reason, Words

_LINE = ("chain", "mode", "environment")
_RESULT = ("name", "step", "leg", "metric")

quarantines = Table(
    "quarantines",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("schema_version", Integer, nullable=False),
    *(Column(name, Words, nullable=False) for name in (*_LINE, *_RESULT)),
    Column("signature", Reason, nullable=False),
    Column("largest", Double, nullable=True),
    *(Column(name, Words, nullable=False) for name in ("owner", "who", "why", "run")),
    Column("evidence", JsonText, nullable=False),
    *(Column(name, Integer, nullable=False) for name in ("failed", "judged")),
    *(Column(name, Double, nullable=False) for name in ("created_at", "expires_at")),
    Column("released_at", Double, nullable=True),
    *(Column(name, Words, nullable=False) for name in ("released_by", "released_because")),
    CheckConstraint("owner <> '' AND who <> '' AND why <> ''", name="because"),
    CheckConstraint("failed >= 1 AND judged >= failed", name="counts"),
    CheckConstraint("expires_at > created_at", name="expires"),
    CheckConstraint(
        "(released_at IS NULL) = (released_by = '') AND (released_at IS NULL) = (released_because = '')",
        name="released",
    ),
    ForeignKeyConstraint(["run"], ["runs.id"]),
    Index(None, *_LINE),
    Index(None, "created_at"),
)
