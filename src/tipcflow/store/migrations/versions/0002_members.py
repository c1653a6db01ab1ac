"""Members: each node's part of an attempt, written by the process that watches that node."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table of members."""
    keys: list[sa.Column[Any]] = [
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("run", "step")),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
    ]
    op.create_table(
        "members",
        *keys,
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("ended", sa.Boolean(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run", "step", "attempt"],
            ["attempts.run", "attempts.step", "attempts.attempt"],
            name=op.f("fk_members_run_step_attempt"),
        ),
        sa.PrimaryKeyConstraint("run", "step", "attempt", "node", name=op.f("pk_members")),
    )


def downgrade() -> None:
    """Remove the table of members."""
    op.drop_table("members")
