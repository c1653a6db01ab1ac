"""The newest run with a verdict of each chain, mode and environment class, and the number of its accepted runs."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_KEY = ("chain", "mode", "environment")
# Without the runs that are not the state of a chain: those that examine other runs, and runs of changes.
_FILL = """
    INSERT INTO line_states
        (chain, mode, environment, run, suite, cluster, status, framework, created_at, accepted)
    SELECT chain, mode, environment, id, suite, cluster, status, framework, created_at, accepted FROM (
        SELECT chain, mode, environment, id, suite, cluster, status, framework, created_at,
            sum(CASE WHEN status IN ('pass', 'improvement') THEN 1 ELSE 0 END)
                OVER (PARTITION BY chain, mode, environment) AS accepted,
            row_number() OVER (PARTITION BY chain, mode, environment ORDER BY created_at DESC, id DESC) AS place
        FROM runs
        WHERE status IS NOT NULL AND status <> 'cancelled' AND "trigger" NOT IN ('confirm', 'bisect', 'ab')
            AND NOT EXISTS (SELECT 1 FROM documents WHERE run = runs.id AND name = 'base')
    ) AS states WHERE place = 1
"""


def upgrade() -> None:
    """Create and fill the table."""
    op.create_table(
        "line_states",
        *(sa.Column(name, sa.Text(), nullable=False) for name in _KEY),
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("run", "suite", "cluster", "status", "framework")
        ),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("accepted", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_line_states_run")),
        sa.PrimaryKeyConstraint(*_KEY, name=op.f("pk_line_states")),
    )
    op.execute(_FILL)


def downgrade() -> None:
    """Remove the table: its rows follow from the runs."""
    op.drop_table("line_states")
