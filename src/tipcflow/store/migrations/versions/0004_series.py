"""Series: the samples of one metric of one process in one row, with their summary.

Converts both ways. What was rolled up comes back as rows of metrics named `<metric>.mean`, `<metric>.median` …
"""

import json
import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import median
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

KEY = ("run", "step", "leg", "attempt", "node", "rank", "metric", "phase")
ROW = (*KEY, "ordinal", "value", "unit", "epoch", "iteration", "source", "offset")
SUMMARY = ("n", "last_ordinal", "finite", "mean", "median", "p10", "p90", "lowest", "highest", "last")
INFINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}
WHOLE = ("attempt", "rank", "ordinal", "epoch", "iteration", "n", "last_ordinal", "finite")
NULL = ("value", "mean", "median", "p10", "p90", "lowest", "highest", "last", "samples", "rolled_up_at")

VIEW_SQLITE = """
CREATE VIEW measurements AS
SELECT s.run, s.step, s.leg, s.attempt, s.node, s.rank, s.metric, s.phase,
    json_extract(e.value, '$[0]') AS ordinal,
    CASE json_extract(e.value, '$[1]') WHEN 'Infinity' THEN 9e999 WHEN '-Infinity' THEN -9e999
        ELSE json_extract(e.value, '$[1]') END AS value,
    coalesce(json_extract(e.value, '$[5]'), s.unit) AS unit,
    json_extract(e.value, '$[2]') AS epoch,
    json_extract(e.value, '$[3]') AS iteration,
    coalesce(json_extract(e.value, '$[6]'), s.source) AS source,
    json_extract(e.value, '$[4]') AS "offset"
FROM series AS s, json_each(s.samples) AS e
"""
VIEW_POSTGRESQL = """
CREATE VIEW measurements AS
SELECT s.run, s.step, s.leg, s.attempt, s.node, s.rank, s.metric, s.phase,
    (e.value ->> 0)::integer AS ordinal,
    (e.value ->> 1)::double precision AS value,
    coalesce(e.value ->> 5, s.unit) AS unit,
    (e.value ->> 2)::integer AS epoch,
    (e.value ->> 3)::integer AS iteration,
    coalesce(e.value ->> 6, s.source) AS source,
    (e.value ->> 4)::bigint AS "offset"
FROM series AS s, json_array_elements(s.samples::json) AS e(value)
"""


def upgrade() -> None:
    """Convert samples in rows to series."""
    make_series()
    convert("measurements", "series", pack)
    op.drop_table("measurements")
    op.execute(VIEW_SQLITE if op.get_bind().dialect.name == "sqlite" else VIEW_POSTGRESQL)


def downgrade() -> None:
    """Convert series back to samples in rows."""
    op.execute("DROP VIEW measurements")
    make_measurements()
    convert("series", "measurements", unpack)
    op.drop_table("series")


def column(name: str) -> sa.Column[Any]:
    """Return a column by its name."""
    kind: sa.types.TypeEngine[Any] = sa.Text()
    if name in WHOLE:
        kind = sa.Integer()
    elif name == "offset":
        kind = sa.BigInteger()
    elif name in NULL and name != "samples":
        kind = sa.Double()
    return sa.Column(name, kind, autoincrement=False, nullable=name in NULL)


def make(table: str, names: Sequence[str], key: Sequence[str], checks: dict[str, str]) -> None:
    """Create a table with its primary key, checks and foreign key."""
    op.create_table(
        table,
        *(column(name) for name in names),
        *(sa.CheckConstraint(condition, name=op.f(f"ck_{table}_{name}")) for name, condition in checks.items()),
        sa.ForeignKeyConstraint(
            ["run", "step", "attempt"],
            ["attempts.run", "attempts.step", "attempts.attempt"],
            name=op.f(f"fk_{table}_run_step_attempt"),
        ),
        sa.PrimaryKeyConstraint(*key, name=op.f(f"pk_{table}")),
        sqlite_with_rowid=False,
    )


def make_series() -> None:
    """Create the table of series."""
    checks = {
        "counts": "rank >= -1 AND n >= 1 AND last_ordinal >= n - 1",
        "named": "node <> '' AND metric <> ''",
        "kept": "(samples IS NULL) = (rolled_up_at IS NOT NULL)",
    }
    make("series", (*KEY, "unit", "source", *SUMMARY, "samples", "rolled_up_at"), KEY, checks)


def make_measurements() -> None:
    """Create the table of single samples."""
    checks = {"named": "node <> '' AND metric <> ''", "counts": "rank >= -1 AND ordinal >= 0"}
    make("measurements", ROW, (*KEY, "ordinal"), checks)


def convert(source: str, target: str, change: Any) -> None:
    """Copy one run at a time, which bounds the memory."""
    connection = op.get_bind()
    tables = {name: sa.Table(name, sa.MetaData(), autoload_with=connection) for name in (source, target)}
    old, new = tables[source], tables[target]
    runs = connection.execute(sa.select(old.c.run).distinct().order_by(old.c.run)).scalars().all()
    order = [name for name in (*KEY, "ordinal") if name in old.c]
    for run in runs:
        rows = connection.execute(sa.select(old).where(old.c.run == run).order_by(*(old.c[n] for n in order)))
        made = list(change(dict(row) for row in rows.mappings()))
        if made:
            connection.execute(sa.insert(new), made)


def pack(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield one row per series from the rows of its samples, which are ordered by key."""
    for key, group in groupby(rows, key=lambda row: tuple(row[name] for name in KEY)):
        own = list(group)
        unit, source = own[0]["unit"], own[0]["source"]
        packed = [
            [
                row["ordinal"],
                INFINITE.get(row["value"], row["value"]),
                row["epoch"],
                row["iteration"],
                row["offset"],
            ]
            + ([row["unit"], row["source"]] if (row["unit"], row["source"]) != (unit, source) else [])
            for row in own
        ]
        columns = dict(zip(SUMMARY, summary([row["value"] for row in own], own[-1]["ordinal"]), strict=True))
        samples = json.dumps(packed, separators=(",", ":"))
        yield (
            dict(zip(KEY, key, strict=True))
            | columns
            | {
                "unit": unit,
                "source": source,
                "samples": samples,
                "rolled_up_at": None,
            }
        )


def summary(samples: list[float | None], last_ordinal: int) -> tuple[Any, ...]:
    """Return the columns of a series that summarize its finite samples."""
    values = sorted(value for value in samples if value is not None and math.isfinite(value))
    head = (len(samples), last_ordinal, len(values))
    if not values:
        return (*head, *[None] * 6, samples[-1])
    shares = (percentile(values, 0.1), percentile(values, 0.9))
    return (*head, sum(values) / len(values), median(values), *shares, values[0], values[-1], samples[-1])


def percentile(ordered: list[float], share: float) -> float:
    """Return a percentile of ascending values, with linear interpolation."""
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    part = position - low
    return ordered[low] * (1 - part) + ordered[low + 1] * part if part else ordered[low]


def unpack(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the samples of each series."""
    for row in rows:
        key = {name: row[name] for name in KEY}
        own = {"unit": row["unit"], "source": row["source"]}
        if row["samples"] is None:
            for name in ("n", "mean", "median", "p10", "p90", "lowest", "highest", "last"):
                named = key | {"metric": f"{row['metric']}.{name}", "ordinal": 0, "value": row[name]}
                yield named | own | {"epoch": -1, "iteration": -1, "offset": -1}
            continue
        for ordinal, value, epoch, iteration, offset, *other in json.loads(row["samples"]):
            if other:
                own = dict(zip(("unit", "source"), other, strict=True))
            else:
                own = {"unit": row["unit"], "source": row["source"]}
            yield (
                key
                | own
                | {
                    "ordinal": ordinal,
                    "value": float(value) if isinstance(value, str) else value,
                    "epoch": epoch,
                    "iteration": iteration,
                    "offset": offset,
                }
            )
