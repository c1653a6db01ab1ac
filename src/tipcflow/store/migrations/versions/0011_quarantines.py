"""Quarantined failures of checks. The downgrade loses them: their failures block again."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table of quarantines."""
    released = "(released_at IS NULL) = (released_by = '') AND (released_at IS NULL) = (released_because = '')"
    op.create_table(
        "quarantines",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("leg", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("largest", sa.Double(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("judged", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("released_at", sa.Double(), nullable=True),
        sa.Column("released_by", sa.Text(), nullable=False),
        sa.Column("released_because", sa.Text(), nullable=False),
        sa.CheckConstraint("owner <> '' AND who <> '' AND why <> ''", name=op.f("ck_quarantines_because")),
        sa.CheckConstraint("failed >= 1 AND judged >= failed", name=op.f("ck_quarantines_counts")),
        sa.CheckConstraint("expires_at > created_at", name=op.f("ck_quarantines_expires")),
        sa.CheckConstraint(released, name=op.f("ck_quarantines_released")),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_quarantines_run")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_quarantines")),
    )
    op.create_index(op.f("ix_quarantines_chain_mode_environment"), "quarantines", ["chain", "mode", "environment"])
    op.create_index(op.f("ix_quarantines_created_at"), "quarantines", ["created_at"])


def downgrade() -> None:
    """Remove the table of quarantines."""
    op.drop_table("quarantines")
