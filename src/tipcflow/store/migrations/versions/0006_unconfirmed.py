"""The status `unconfirmed` of runs and check results.

Older schemas do not know the word. The downgrade writes `regression`: the old word that is not green, too.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

RUN_WORDS = ("pass", "improvement", "cancelled", "infra_failure", "regression", "failed", "config_error")
CHECK_WORDS = ("pass", "improvement", "insufficient_data", "not_run", "infra_failure", "regression", "failed")
NEW, OLD = "unconfirmed", "regression"


def upgrade() -> None:
    """Allow the status `unconfirmed`."""
    for table, words in (("runs", RUN_WORDS), ("check_results", CHECK_WORDS)):
        place = words.index(OLD)
        allow(table, (*words[:place], NEW, *words[place:]))


def downgrade() -> None:
    """Write `regression` for `unconfirmed`, then disallow it."""
    for table, words in (("runs", RUN_WORDS), ("check_results", CHECK_WORDS)):
        known = sa.table(table, sa.column("status"))
        op.execute(known.update().where(known.c.status == NEW).values(status=OLD))
        allow(table, words)


def allow(table: str, words: tuple[str, ...]) -> None:
    """Replace the table's list of status words. SQLite copies the table: it cannot change a constraint."""
    name = op.f(f"ck_{table}_status")
    listed = ", ".join(f"'{word}'" for word in words)
    with op.batch_alter_table(table) as batch:
        batch.drop_constraint(name, type_="check")
        batch.create_check_constraint(name, f"status IN ({listed})")
