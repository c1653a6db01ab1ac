"""Indexes of the pages: the order of the runs of a line, the newest runs of a suite, and the text search.

The index of the text search requires PostgreSQL's extension `pg_trgm`. Where it is missing, or the account may not
create it, a text search reads all runs.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

# The same expression as in the query (store/queries/pages.py).
_SEARCHED = ("chain", "id", "reason", "suite_commit", "framework", "cluster", "mode", "trigger")
_LINE = ["chain", "mode", "environment", "created_at"]


def upgrade() -> None:
    """Create the indexes."""
    op.create_index(op.f("ix_runs_chain_mode_environment_created_at_id"), "runs", [*_LINE, "id"])
    op.create_index(op.f("ix_runs_suite_created_at"), "runs", ["suite", "created_at"])
    op.drop_index(op.f("ix_runs_chain_mode_environment_created_at"), table_name="runs")
    if op.get_bind().dialect.name == "postgresql" and _has_trigrams(op.get_bind()):
        text = " || ' ' || ".join(_SEARCHED)
        op.execute(f'CREATE INDEX ix_runs_search ON runs USING gin ((({text}) COLLATE "C") gin_trgm_ops)')


def downgrade() -> None:
    """Remove the indexes; the extension stays, because others may use it."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP INDEX IF EXISTS ix_runs_search")
    op.create_index(op.f("ix_runs_chain_mode_environment_created_at"), "runs", _LINE)
    op.drop_index(op.f("ix_runs_suite_created_at"), table_name="runs")
    op.drop_index(op.f("ix_runs_chain_mode_environment_created_at_id"), table_name="runs")


def _has_trigrams(connection: sa.Connection) -> bool:
    """Whether the extension is usable; it is created if it is installed and the account may do so."""
    is_known = sa.text("SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_trgm'")
    if not connection.execute(is_known).scalar():
        return False
    try:
        with connection.begin_nested():
            connection.execute(sa.text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
            connection.execute(sa.text("SELECT 'gin_trgm_ops'::text, similarity('a', 'a')"))
    except sa.exc.DBAPIError:
        return False
    return True
