"""The tables. Keys were made once, with the first migration, and hold no NULL; there are no secrets in here.

Times are seconds since the epoch. `status` is NULL while there is none yet.
"""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    text,
)

from tipcflow.domain import Status
from tipcflow.store.types import JsonText, Reason, Sample, Words

RUN_WORDS = (
    Status.PASS,
    Status.IMPROVEMENT,
    Status.CANCELLED,
    Status.INFRA_FAILURE,
    Status.UNCONFIRMED,
    Status.REGRESSION,
    Status.FAILED,
    Status.CONFIG_ERROR,
)
# A leg that was running when its node died or a user stopped it is neither failed nor blocked, so legs use the
# statuses of the step that they belong to.
STEP_WORDS = (
    Status.PASS,
    Status.NOT_RUN,
    Status.BLOCKED,
    Status.CANCELLED,
    Status.INFRA_FAILURE,
    Status.FAILED,
)
CHECK_WORDS = (
    Status.PASS,
    Status.IMPROVEMENT,
    Status.INSUFFICIENT_DATA,
    Status.NOT_RUN,
    Status.INFRA_FAILURE,
    Status.UNCONFIRMED,
    Status.REGRESSION,
    Status.FAILED,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _words(name: str, *, key: bool = False, null: bool = False) -> Column[Any]:
    return Column(name, Words, primary_key=key, nullable=null)


def _reason(name: str) -> Column[Any]:
    return Column(name, Reason, nullable=False)


def _whole(name: str, *, key: bool = False, null: bool = False) -> Column[Any]:
    return Column(name, Integer, primary_key=key, nullable=null, autoincrement=False)


def _time(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, Double, nullable=null)


def _json(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, JsonText, nullable=null)


def _status(words: Iterable[Status]) -> CheckConstraint:
    listed = ", ".join(f"'{word.value}'" for word in words)
    return CheckConstraint(f"status IN ({listed})", name="status")


def _refers(columns: list[str], target: list[str]) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(columns, target)


runs = Table(
    "runs",
    metadata,
    _words("id", key=True),
    _whole("schema_version"),
    *(_words(name) for name in ("chain", "suite", "model", "mode", "cluster", "trigger")),
    *(_words(name) for name in ("suite_commit", "suite_sha256", "framework")),
    Column("seed", BigInteger),
    _words("compat"),
    _json("nodes"),
    _words("environment"),
    _words("status", null=True),
    _reason("reason"),
    _time("created_at"),
    _time("ended_at", null=True),
    _status(RUN_WORDS),
    CheckConstraint("id <> ''", name="id"),
    CheckConstraint("(status IS NULL) = (ended_at IS NULL)", name="ended"),
    Index(None, "created_at"),
    Index(None, "chain", "mode", "environment", "created_at", "id"),  # the runs of a line (states.py)
    Index(None, "suite", "created_at"),
    Index(None, "chain", "created_at", "id"),  # the newest runs of each chain (pages.py)
    Index(None, "framework", "created_at"),  # the newest framework builds
    # What is running. An index of all statuses would mislead SQLite, which has no statistics here, in queries of
    # one chain.
    Index(
        "ix_runs_open", "created_at", sqlite_where=text("status IS NULL"), postgresql_where=text("status IS NULL")
    ),
)

plans = Table(
    "plans",
    metadata,
    _words("run", key=True),
    _whole("schema_version"),
    _words("params_file"),
    _words("params_sha256"),
    _json("body"),
    _refers(["run"], ["runs.id"]),
)

steps = Table(
    "steps",
    metadata,
    _words("run", key=True),
    _words("step", key=True),
    _whole("position"),
    _words("kind"),
    _words("variant"),
    _whole("repeat"),
    _whole("world_size"),
    _words("status", null=True),
    _reason("reason"),
    _status(STEP_WORDS),
    _refers(["run"], ["runs.id"]),
)

attempts = Table(
    "attempts",
    metadata,
    _words("run", key=True),
    _words("step", key=True),
    _whole("attempt", key=True),
    _json("nodes"),
    _words("status", null=True),
    _reason("reason"),
    _json("records"),
    _time("started_at"),
    _time("ended_at", null=True),
    _status(STEP_WORDS),
    CheckConstraint("attempt >= 1", name="attempt"),
    CheckConstraint("(status IS NULL) = (ended_at IS NULL)", name="ended"),
    _refers(["run", "step"], ["steps.run", "steps.step"]),
    # Two schedulers must not both try one step: at most one attempt of a step is open.
    Index(
        "ix_attempts_open",
        "run",
        "step",
        unique=True,
        sqlite_where=text("ended_at IS NULL"),
        postgresql_where=text("ended_at IS NULL"),
    ),
)

# What is known of each node's part of an attempt, for those who run one attempt from several processes.
members = Table(
    "members",
    metadata,
    _words("run", key=True),
    _words("step", key=True),
    _whole("attempt", key=True),
    _words("node", key=True),
    _json("state"),
    Column("ended", Boolean, nullable=False),
    _time("updated_at"),
    _refers(["run", "step", "attempt"], ["attempts.run", "attempts.step", "attempts.attempt"]),
)

environments = Table(
    "environments",
    metadata,
    _words("run", key=True),
    _words("node", key=True),
    *(_words(name) for name in ("hostname", "os", "kernel", "cpu_model", "gpu_model", "driver")),
    _whole("gpu_count"),
    _words("framework"),
    _words("framework_version"),
    _json("facts"),
    _refers(["run"], ["runs.id"]),
)

legs = Table(
    "legs",
    metadata,
    _words("run", key=True),
    _words("step", key=True),
    _words("leg", key=True),
    _whole("attempt", key=True),  # 0: the leg was not started
    _words("node"),
    _words("status"),
    _reason("reason"),
    _reason("end_reason"),
    _whole("exit_code", null=True),
    _time("duration_s", null=True),
    _json("record", null=True),
    _status(STEP_WORDS),
    CheckConstraint("leg <> ''", name="leg"),
    CheckConstraint("attempt >= 0", name="attempt"),
    _refers(["run", "step"], ["steps.run", "steps.step"]),
)

# The samples of one metric of one process, in one row; the view `measurements` shows them one by one.
series = Table(
    "series",
    metadata,
    _words("run", key=True),
    _words("step", key=True),
    _words("leg", key=True),
    _whole("attempt", key=True),
    _words("node", key=True),
    _whole("rank", key=True),
    _words("metric", key=True),
    _words("phase", key=True),
    _words("unit"),
    _words("source"),
    _whole("n"),
    _whole("last_ordinal"),
    _whole("finite"),
    *(_time(name, null=True) for name in ("mean", "median", "p10", "p90", "lowest", "highest")),  # of the finite
    Column("last", Sample, nullable=True),  # NULL is nan
    _words("samples", null=True),  # JSON; NULL once rolled up
    _time("rolled_up_at", null=True),
    CheckConstraint("rank >= -1 AND n >= 1 AND last_ordinal >= n - 1", name="counts"),
    CheckConstraint("node <> '' AND metric <> ''", name="named"),
    CheckConstraint("(samples IS NULL) = (rolled_up_at IS NOT NULL)", name="kept"),
    _refers(["run", "step", "attempt"], ["attempts.run", "attempts.step", "attempts.attempt"]),
    sqlite_with_rowid=False,
)

check_results = Table(
    "check_results",
    metadata,
    _words("run", key=True),
    _words("name", key=True),
    _words("step", key=True),
    _words("leg", key=True),
    _words("metric", key=True),
    _whole("ordinal", key=True),  # counts results of the same check
    _whole("position"),
    _whole("schema_version"),
    _words("status"),
    _reason("reason"),
    Column("gating", Boolean, nullable=False),
    _json("details"),
    _status(CHECK_WORDS),
    _refers(["run"], ["runs.id"]),
)

documents = Table(
    "documents",
    metadata,
    _words("run", key=True),
    _words("name", key=True),
    _json("body", null=True),
    _time("updated_at"),
    _refers(["run"], ["runs.id"]),
)

baselines = Table(
    "baselines",
    metadata,
    _words("chain", key=True),
    _words("mode", key=True),
    _words("step", key=True),
    _words("leg", key=True),
    _words("metric", key=True),
    _words("environment", key=True),
    _whole("ordinal", key=True),  # the largest one is in force, the older ones stay visible
    Column("value", Sample, nullable=True),
    _words("unit"),
    Column("pinned", Boolean, nullable=False),
    _words("run"),
    _words("who"),
    _words("why"),
    _time("accepted_at"),
    CheckConstraint("who <> '' AND why <> ''", name="because"),
    _refers(["run"], ["runs.id"]),
)

leases = Table(
    "leases",
    metadata,
    _words("node", key=True),
    _whole("slot", key=True),
    _words("run"),
    _words("owner"),
    Column("fence", BigInteger, nullable=False),
    _time("acquired_at"),
    _time("expires_at"),
    CheckConstraint("slot >= 0", name="slot"),
    _refers(["run"], ["runs.id"]),
    Index(None, "run"),
)

# Runs that wait for slots, each for all that it wants. Who goes first follows from these columns and the time.
lease_requests = Table(
    "lease_requests",
    metadata,
    _words("run", key=True),
    _json("slots"),
    _words("owner"),
    _whole("priority"),
    _time("created_at"),
    _time("expires_at"),
    _refers(["run"], ["runs.id"]),
)

# One row: the last fence that was given out, and what two that acquire at once queue up for.
fences = Table(
    "fences",
    metadata,
    _whole("id", key=True),
    Column("last", BigInteger, nullable=False),
    CheckConstraint("id = 1", name="single"),
)

# Verified webhook deliveries, each handled once. `body` is the reduced event, NULL once the row only serves to
# detect replays. A process that handles a row holds it until `taken_until`.
outbox = Table(
    "outbox",
    metadata,
    _words("delivery", key=True),
    *(_words(name) for name in ("body_sha256", "connection", "repository", "event")),
    _json("body", null=True),
    _time("received_at"),
    _words("owner"),
    _time("taken_until"),
    _whole("takes"),
    _time("done_at", null=True),
    _reason("outcome"),
    CheckConstraint("delivery <> ''", name="delivery"),
    CheckConstraint("body IS NOT NULL OR done_at IS NOT NULL", name="body"),
    Index(None, "body_sha256", unique=True),
    Index(None, "done_at", "received_at"),
)

_COMMIT = (("repository", _words), ("number", _whole), ("head_sha", _words))

# Attempts of commits on GitHub: one row is one run of the selected chains, however often GitHub sends its event.
# `request` is its origin. `number` is 0 for pushes and merge groups. `state`: store/github/attempts.py.
pull_attempts = Table(
    "pull_attempts",
    metadata,
    *(column(name, key=True) for name, column in (*_COMMIT, ("attempt", _whole))),
    *(_words(name) for name in ("request", "state")),
    *(_json(name) for name in ("body", "chains")),
    *(_reason("cancel"), _words("observed"), _time("created_at"), _time("ended_at", null=True)),
    CheckConstraint("number >= 0 AND attempt >= 1", name="numbers"),
    CheckConstraint("head_sha <> ''", name="head_sha"),
    Index("ix_pull_attempts_request", "repository", "number", "head_sha", "request", unique=True),
    Index(None, "ended_at"),
)

# Commits of forks whose code may run.
approvals = Table(
    "approvals",
    metadata,
    *(column(name, key=True) for name, column in _COMMIT),
    *(_words("who"), _time("approved_at")),
    CheckConstraint("head_sha <> '' AND who <> ''", name="named"),
)

# What GitHub has to show: a row per check run, comment, reaction, reply and issue. A new content replaces an
# unsent one; `sent_revision` is the last revision that GitHub has. A content with a lower `rank` is out of date.
# Digests of teams and weekly reports that were sent are rows without a repository.
messages = Table(
    "messages",
    metadata,
    *(_words(name, key=True) for name in ("repository", "kind", "subject")),
    *(_time("rank"), _json("body"), _whole("revision"), _whole("sent_revision")),
    *(_time("created_at"), _time("due_at"), _time("sent_at", null=True), _whole("tries"), _reason("error")),
    CheckConstraint("sent_revision <= revision", name="revisions"),
    Index(None, "due_at"),
)
