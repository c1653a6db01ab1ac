"""An index that gives the newest runs of each chain."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index of the newest runs."""
    op.create_index(op.f("ix_runs_chain_created_at_id"), "runs", ["chain", "created_at", "id"])


def downgrade() -> None:
    """Remove the index of the newest runs."""
    op.drop_index(op.f("ix_runs_chain_created_at_id"), table_name="runs")
