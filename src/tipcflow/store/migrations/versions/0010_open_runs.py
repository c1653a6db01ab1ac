"""Indexes that give the runs without a status, and the newest framework builds."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the indexes."""
    is_open = sa.text("status IS NULL")
    op.create_index(op.f("ix_runs_open"), "runs", ["created_at"], sqlite_where=is_open, postgresql_where=is_open)
    op.create_index(op.f("ix_runs_framework_created_at"), "runs", ["framework", "created_at"])


def downgrade() -> None:
    """Remove the indexes."""
    op.drop_index(op.f("ix_runs_framework_created_at"), table_name="runs")
    op.drop_index(op.f("ix_runs_open"), table_name="runs")
