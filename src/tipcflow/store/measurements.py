"""Measurements: stored once, whatever happens."""

import math
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import BigInteger, Connection, Integer, func, select

from tipcflow.domain import Measurement
from tipcflow.store.base import StoreBase
from tipcflow.store.schema import measurements
from tipcflow.store.types import Sample, Words, storable

BATCH = 5000
_LOCK = 0x71FC
KEY = ("run", "step", "leg", "attempt", "node", "rank", "metric", "phase", "ordinal")
COLUMNS = (*KEY, "value", "unit", "epoch", "iteration", "source", "offset")
Row = tuple[Any, ...]


class MeasurementsMixin(StoreBase):
    """Table measurements."""

    def add_measurements(self, items: Iterable[Measurement]) -> int:
        """Store measurements, all of them or none; those whose key is there already are left as they are.

        One call should be about one run: calls about the same run wait for each other, so that two that store the
        same rows in different orders do not lock each other out.

        Returns:
            How many rows were really added, so that a repeated call returns 0.

        Raises:
            sqlalchemy.exc.IntegrityError: when their attempt was never opened.
        """
        added = 0
        iterator = iter(items)
        with self._write() as connection:
            while batch := list(islice(iterator, BATCH)):
                _lock(connection, {item.run for item in batch})
                added += _insert(connection, [_row(item) for item in batch])
        return added

    def measurements(
        self,
        run_id: str,
        *,
        step: str | None = None,
        leg: str | None = None,
        attempt: int | None = None,
        node: str | None = None,
        rank: int | None = None,
        metric: str | Sequence[str] | None = None,
        phase: str | None = None,
    ) -> list[Measurement]:
        """The measurements of a run that match all filters, in the order of their key."""
        query = select(measurements).where(measurements.c.run == run_id)
        filters = {"step": step, "leg": leg, "attempt": attempt, "node": node, "rank": rank, "phase": phase}
        for name, value in filters.items():
            if value is not None:
                query = query.where(measurements.c[name] == value)
        if isinstance(metric, str):
            query = query.where(measurements.c.metric == metric)
        elif metric is not None:
            query = query.where(measurements.c.metric.in_(list(metric)))
        query = query.order_by(*(measurements.c[name] for name in KEY))
        with self._read() as connection:
            return [Measurement.model_validate(dict(row)) for row in connection.execute(query).mappings()]


def _row(item: Measurement) -> Row:
    """The item's values in the order of the columns, as the drivers take them."""
    fields = dict(item)
    fields["phase"] = item.phase.value
    fields["value"] = None if math.isnan(item.value) else float(item.value)
    return tuple(
        storable(value) if isinstance(value, str) else value for value in map(fields.__getitem__, COLUMNS)
    )


def _lock(connection: Connection, runs: set[str]) -> None:
    """Queue up behind other writers of the same runs, until the transaction ends (SQLite did so at BEGIN)."""
    if connection.dialect.name == "postgresql":
        for run in sorted(runs):
            key = func.pg_advisory_xact_lock(_LOCK, func.hashtext(storable(run)))
            connection.execute(select(key))


def _insert(connection: Connection, rows: list[Row]) -> int:
    """Insert the rows that are new; straight to the driver, which is several times as fast, and counts them."""
    if connection.dialect.name == "postgresql":
        return connection.exec_driver_sql(_POSTGRESQL, tuple(map(list, zip(*rows, strict=True)))).rowcount
    return connection.exec_driver_sql(_SQLITE, rows).rowcount


def _postgresql() -> str:
    """One statement for the whole batch, with an array per column."""
    types = {Integer: "int4", BigInteger: "int8", Words: "text", Sample: "float8"}
    arrays = ", ".join(f"%s::{types[type(measurements.c[name].type)]}[]" for name in COLUMNS)
    return f"INSERT INTO measurements ({_NAMES}) SELECT * FROM unnest({arrays}) {_IF_NEW}"  # noqa: S608


_NAMES = ", ".join(f'"{name}"' for name in COLUMNS)
_IF_NEW = "ON CONFLICT DO NOTHING"  # unlike SQLite's INSERT OR IGNORE it lets no broken constraint pass
_SQLITE = f"INSERT INTO measurements ({_NAMES}) VALUES ({', '.join('?' * len(COLUMNS))}) {_IF_NEW}"  # noqa: S608
_POSTGRESQL = _postgresql()
