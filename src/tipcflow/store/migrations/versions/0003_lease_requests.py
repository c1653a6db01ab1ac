"""Requests for leases: runs that wait for slots."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table of requests for leases."""
    op.create_table(
        "lease_requests",
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("slots", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_lease_requests_run")),
        sa.PrimaryKeyConstraint("run", name=op.f("pk_lease_requests")),
    )


def downgrade() -> None:
    """Remove the table of requests for leases."""
    op.drop_table("lease_requests")
