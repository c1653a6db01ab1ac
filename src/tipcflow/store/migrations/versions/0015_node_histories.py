"""The speed of nodes over time, which takes seconds to find in the runs of a quarter."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table; the next maintenance fills it."""
    op.create_table(
        "node_histories",
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("days", sa.Double(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "days", name=op.f("pk_node_histories")),
    )


def downgrade() -> None:
    """Remove the table: its rows follow from the runs."""
    op.drop_table("node_histories")
