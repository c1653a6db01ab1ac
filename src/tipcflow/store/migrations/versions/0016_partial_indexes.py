"""Indexes of the pages Changes and Flaky: runs whose checks may have found a change, and equal runs."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_SUBJECT = ["chain", "mode", "environment", "framework", "suite_commit", "suite_sha256"]
# The same conditions as in the queries (store/schema/partial_indexes.py).
_INDEXES = {
    "ix_runs_may_alert": (["created_at"], "status IN ('regression', 'unconfirmed', 'improvement', 'failed')"),
    "ix_runs_subject": (
        [*_SUBJECT, "created_at", "status"],
        "status IN ('pass', 'improvement', 'regression', 'unconfirmed', 'failed')"
        " AND \"trigger\" NOT IN ('confirm', 'bisect', 'ab') AND framework <> ''",
    ),
}


def upgrade() -> None:
    """Create the indexes."""
    for name, (columns, condition) in _INDEXES.items():
        where = sa.text(condition)
        op.create_index(op.f(name), "runs", columns, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    """Remove the indexes."""
    for name in _INDEXES:
        op.drop_index(op.f(name), table_name="runs")
