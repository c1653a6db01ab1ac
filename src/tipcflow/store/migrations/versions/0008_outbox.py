"""Outbox of verified webhook deliveries. The downgrade loses them: older versions have no webhook."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the outbox of deliveries."""
    op.create_table(
        "outbox",
        sa.Column("delivery", sa.Text(), nullable=False),
        sa.Column("body_sha256", sa.Text(), nullable=False),
        sa.Column("connection", sa.Text(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("received_at", sa.Double(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("taken_until", sa.Double(), nullable=False),
        sa.Column("takes", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("done_at", sa.Double(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.CheckConstraint("delivery <> ''", name=op.f("ck_outbox_delivery")),
        sa.CheckConstraint("body IS NOT NULL OR done_at IS NOT NULL", name=op.f("ck_outbox_body")),
        sa.PrimaryKeyConstraint("delivery", name=op.f("pk_outbox")),
    )
    op.create_index(op.f("ix_outbox_body_sha256"), "outbox", ["body_sha256"], unique=True)
    op.create_index(op.f("ix_outbox_done_at_received_at"), "outbox", ["done_at", "received_at"])


def downgrade() -> None:
    """Remove the outbox of deliveries."""
    op.drop_table("outbox")
