"""Attempts of commits on GitHub, approvals of forks, and messages to GitHub. The downgrade loses them."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables of attempts, approvals and messages."""
    op.create_table(
        "pull_attempts",
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("head_sha", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("chains", sa.Text(), nullable=False),
        sa.Column("cancel", sa.Text(), nullable=False),
        sa.Column("observed", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.CheckConstraint("number >= 0 AND attempt >= 1", name=op.f("ck_pull_attempts_numbers")),
        sa.CheckConstraint("head_sha <> ''", name=op.f("ck_pull_attempts_head_sha")),
        sa.PrimaryKeyConstraint("repository", "number", "head_sha", "attempt", name=op.f("pk_pull_attempts")),
    )
    op.create_index(
        op.f("ix_pull_attempts_request"),
        "pull_attempts",
        ["repository", "number", "head_sha", "request"],
        unique=True,
    )
    op.create_index(op.f("ix_pull_attempts_ended_at"), "pull_attempts", ["ended_at"])
    op.create_table(
        "approvals",
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("head_sha", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("approved_at", sa.Double(), nullable=False),
        sa.CheckConstraint("head_sha <> '' AND who <> ''", name=op.f("ck_approvals_named")),
        sa.PrimaryKeyConstraint("repository", "number", "head_sha", name=op.f("pk_approvals")),
    )
    op.create_table(
        "messages",
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("rank", sa.Double(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("sent_revision", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=False),
        sa.Column("sent_at", sa.Double(), nullable=True),
        sa.Column("tries", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.CheckConstraint("sent_revision <= revision", name=op.f("ck_messages_revisions")),
        sa.PrimaryKeyConstraint("repository", "kind", "subject", name=op.f("pk_messages")),
    )
    op.create_index(op.f("ix_messages_due_at"), "messages", ["due_at"])


def downgrade() -> None:
    """Remove the tables of attempts, approvals and messages."""
    for name in ("messages", "approvals", "pull_attempts"):
        op.drop_table(name)
