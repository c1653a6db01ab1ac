"""Alerts and their history. The downgrade loses both; later regressions become new alerts."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables of alerts."""
    op.create_table(
        "alerts",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("cause", sa.Integer(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("suite", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("first", sa.Text(), nullable=False),
        sa.Column("last_good", sa.Text(), nullable=False),
        sa.Column("newest", sa.Text(), nullable=False),
        sa.Column("gone", sa.Text(), nullable=False),
        sa.Column("suspects", sa.Text(), nullable=False),
        sa.Column("metrics", sa.Text(), nullable=False),
        sa.Column("state_at", sa.Double(), nullable=False),
        sa.Column("first_at", sa.Double(), nullable=False),
        sa.Column("newest_at", sa.Double(), nullable=False),
        sa.Column("gone_at", sa.Double(), nullable=True),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.CheckConstraint("(gone_at IS NULL) = (gone = '')", name=op.f("ck_alerts_gone")),
        sa.CheckConstraint("runs >= 1 AND cause >= 1 AND cause <= number", name=op.f("ck_alerts_counts")),
        sa.ForeignKeyConstraint(["first"], ["runs.id"], name=op.f("fk_alerts_first")),
        sa.ForeignKeyConstraint(["newest"], ["runs.id"], name=op.f("fk_alerts_newest")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_alerts")),
    )
    op.create_index(op.f("ix_alerts_chain_mode_environment"), "alerts", ["chain", "mode", "environment"])
    op.create_index(op.f("ix_alerts_state"), "alerts", ["state"])
    op.create_index(op.f("ix_alerts_newest_at"), "alerts", ["newest_at"])
    op.create_table(
        "alert_events",
        sa.Column("alert", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.CheckConstraint("who <> ''", name=op.f("ck_alert_events_who")),
        sa.ForeignKeyConstraint(["alert"], ["alerts.number"], name=op.f("fk_alert_events_alert")),
        sa.PrimaryKeyConstraint("alert", "ordinal", name=op.f("pk_alert_events")),
    )
    op.create_index(op.f("ix_alert_events_run"), "alert_events", ["run"])


def downgrade() -> None:
    """Remove the tables of alerts."""
    op.drop_table("alert_events")
    op.drop_table("alerts")
