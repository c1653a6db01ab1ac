"""First tables: runs and plans, steps and their attempts, what they measured, how they were judged, leases."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

RUN_WORDS = (
    "status IN ('pass', 'improvement', 'cancelled', 'infra_failure', 'regression', 'failed', 'config_error')"
)
STEP_WORDS = "status IN ('pass', 'not_run', 'blocked', 'cancelled', 'infra_failure', 'failed')"
CHECK_WORDS = (
    "status IN ('pass', 'improvement', 'insufficient_data', 'not_run', 'infra_failure', 'regression', 'failed')"
)
OPEN = sa.text("ended_at IS NULL")
ENDED = "(status IS NULL) = (ended_at IS NULL)"
TABLES = (
    *("measurements", "legs", "attempts", "steps", "plans", "leases", "environments", "documents"),
    *("check_results", "baselines", "runs", "fences"),
)


def words(*names: str) -> list[sa.Column[Any]]:
    """Return text columns."""
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def whole(*names: str) -> list[sa.Column[Any]]:
    """Return integer columns."""
    return [sa.Column(name, sa.Integer(), autoincrement=False, nullable=False) for name in names]


def times(*names: str) -> list[sa.Column[Any]]:
    """Return columns of times, seconds since the epoch."""
    return [sa.Column(name, sa.Double(), nullable=False) for name in names]


def status(null: bool) -> sa.Column[Any]:
    """Return the column of a status."""
    return sa.Column("status", sa.Text(), nullable=null)


def ended_at() -> sa.Column[Any]:
    """Return the column of an end, seconds since the epoch."""
    return sa.Column("ended_at", sa.Double(), nullable=True)


def check(table: str, name: str, condition: str) -> sa.CheckConstraint:
    """Return a named check constraint."""
    return sa.CheckConstraint(condition, name=op.f(f"ck_{table}_{name}"))


def key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    """Return a named primary key."""
    return sa.PrimaryKeyConstraint(*columns, name=op.f(f"pk_{table}"))


def refers(table: str, columns: list[str], target: list[str]) -> sa.ForeignKeyConstraint:
    """Return a named foreign key."""
    return sa.ForeignKeyConstraint(columns, target, name=op.f(f"fk_{table}_{'_'.join(columns)}"))


def upgrade() -> None:
    """Create the first tables."""
    runs_and_plans()
    steps_and_attempts()
    results()
    measurements()
    judgement()
    leases()


def runs_and_plans() -> None:
    """Create the tables of runs and their plans."""
    op.create_table(
        "runs",
        *words("id"),
        *whole("schema_version"),
        *words("chain", "suite", "model", "mode", "cluster", "trigger"),
        *words("suite_commit", "suite_sha256", "framework"),
        sa.Column("seed", sa.BigInteger(), nullable=True),
        *words("compat", "nodes", "environment"),
        status(null=True),
        *words("reason"),
        *times("created_at"),
        ended_at(),
        check("runs", "id", "id <> ''"),
        check("runs", "status", RUN_WORDS),
        check("runs", "ended", ENDED),
        key("runs", "id"),
    )
    op.create_index("ix_runs_created_at", "runs", ["created_at"])
    columns = ["chain", "mode", "environment", "created_at"]
    op.create_index("ix_runs_chain_mode_environment_created_at", "runs", columns)
    op.create_table(
        "plans",
        *words("run"),
        *whole("schema_version"),
        *words("params_file", "params_sha256", "body"),
        refers("plans", ["run"], ["runs.id"]),
        key("plans", "run"),
    )


def steps_and_attempts() -> None:
    """Create the tables of steps and attempts."""
    op.create_table(
        "steps",
        *words("run", "step"),
        *whole("position"),
        *words("kind", "variant"),
        *whole("repeat", "world_size"),
        status(null=True),
        *words("reason"),
        check("steps", "status", STEP_WORDS),
        refers("steps", ["run"], ["runs.id"]),
        key("steps", "run", "step"),
    )
    op.create_table(
        "attempts",
        *words("run", "step"),
        *whole("attempt"),
        *words("nodes"),
        status(null=True),
        *words("reason", "records"),
        *times("started_at"),
        ended_at(),
        check("attempts", "status", STEP_WORDS),
        check("attempts", "ended", ENDED),
        check("attempts", "attempt", "attempt >= 1"),
        refers("attempts", ["run", "step"], ["steps.run", "steps.step"]),
        key("attempts", "run", "step", "attempt"),
    )
    op.create_index(
        "ix_attempts_open", "attempts", ["run", "step"], unique=True, sqlite_where=OPEN, postgresql_where=OPEN
    )


def results() -> None:
    """Create the tables of environments, inference legs and documents."""
    op.create_table(
        "environments",
        *words("run", "node", "hostname", "os", "kernel", "cpu_model", "gpu_model", "driver"),
        *whole("gpu_count"),
        *words("framework", "framework_version", "facts"),
        refers("environments", ["run"], ["runs.id"]),
        key("environments", "run", "node"),
    )
    op.create_table(
        "legs",
        *words("run", "step", "leg"),
        *whole("attempt"),
        *words("node"),
        status(null=False),
        *words("reason", "end_reason"),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("duration_s", sa.Double(), nullable=True),
        sa.Column("record", sa.Text(), nullable=True),
        check("legs", "leg", "leg <> ''"),
        check("legs", "status", STEP_WORDS),
        check("legs", "attempt", "attempt >= 0"),
        refers("legs", ["run", "step"], ["steps.run", "steps.step"]),
        key("legs", "run", "step", "leg", "attempt"),
    )
    op.create_table(
        "documents",
        *words("run", "name"),
        sa.Column("body", sa.Text(), nullable=True),
        *times("updated_at"),
        refers("documents", ["run"], ["runs.id"]),
        key("documents", "run", "name"),
    )


def measurements() -> None:
    """Create the table of measurements, one row per sample."""
    op.create_table(
        "measurements",
        *words("run", "step", "leg"),
        *whole("attempt"),
        *words("node"),
        *whole("rank"),
        *words("metric", "phase"),
        *whole("ordinal"),
        sa.Column("value", sa.Double(), nullable=True),
        *words("unit"),
        *whole("epoch", "iteration"),
        *words("source"),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        check("measurements", "named", "node <> '' AND metric <> ''"),
        check("measurements", "counts", "rank >= -1 AND ordinal >= 0"),
        refers(
            "measurements",
            ["run", "step", "attempt"],
            ["attempts.run", "attempts.step", "attempts.attempt"],
        ),
        key("measurements", "run", "step", "leg", "attempt", "node", "rank", "metric", "phase", "ordinal"),
        sqlite_with_rowid=False,
    )


def judgement() -> None:
    """Create the tables of check results and baselines."""
    op.create_table(
        "check_results",
        *words("run", "name", "step", "leg", "metric"),
        *whole("ordinal", "position", "schema_version"),
        status(null=False),
        *words("reason"),
        sa.Column("gating", sa.Boolean(), nullable=False),
        *words("details"),
        check("check_results", "status", CHECK_WORDS),
        refers("check_results", ["run"], ["runs.id"]),
        key("check_results", "run", "name", "step", "leg", "metric", "ordinal"),
    )
    op.create_table(
        "baselines",
        *words("chain", "mode", "step", "leg", "metric", "environment"),
        *whole("ordinal"),
        sa.Column("value", sa.Double(), nullable=True),
        *words("unit"),
        sa.Column("pinned", sa.Boolean(), nullable=False),
        *words("run", "who", "why"),
        *times("accepted_at"),
        check("baselines", "because", "who <> '' AND why <> ''"),
        refers("baselines", ["run"], ["runs.id"]),
        key("baselines", "chain", "mode", "step", "leg", "metric", "environment", "ordinal"),
    )


def leases() -> None:
    """Create the tables of leases and fences."""
    op.create_table(
        "leases",
        *words("node"),
        *whole("slot"),
        *words("run", "owner"),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        *times("acquired_at", "expires_at"),
        check("leases", "slot", "slot >= 0"),
        refers("leases", ["run"], ["runs.id"]),
        key("leases", "node", "slot"),
    )
    op.create_index("ix_leases_run", "leases", ["run"])
    fences = op.create_table(
        "fences",
        *whole("id"),
        sa.Column("last", sa.BigInteger(), nullable=False),
        check("fences", "single", "id = 1"),
        key("fences", "id"),
    )
    op.bulk_insert(fences, [{"id": 1, "last": 0}])


def downgrade() -> None:
    """Remove all tables."""
    for table in TABLES:
        op.drop_table(table)
