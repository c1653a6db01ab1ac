"""Storage of measurements, each exactly once. A series of them is one row (format: packing.py)."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Select, select, update
from sqlalchemy.exc import DBAPIError

from tipcflow.domain import Measurement
from tipcflow.store.base import Part
from tipcflow.store.schema import series
from tipcflow.store.series.packing import SUMMARY, pack, packed_of, summary, text_of, unpack
from tipcflow.store.types import storable

# Series per statement.
BATCH = 1000
_LOCK = 0x71FC
# Minimum number of samples read of each series.
LEAST = 512
KEY = ("run", "step", "leg", "attempt", "node", "rank", "metric", "phase")
COLUMNS = (*KEY, "unit", "source", *SUMMARY, "samples")
Key = tuple[Any, ...]
Row = tuple[Any, ...]
Groups = dict[Key, list[Measurement]]
Known = Mapping[str, Any]
_key = attrgetter(*KEY)


class Measurements(Part):
    """Table series."""

    def add(self, items: Iterable[Measurement]) -> int:
        """Store measurements, all of them or none; measurements whose key is already stored are unchanged.

        Concurrent calls for the same run wait for each other, so that two calls with the same measurements
        store them once and do not deadlock.

        Returns:
            Number of measurements added, so a repeated call returns 0.

        Raises:
            sqlalchemy.exc.IntegrityError: the attempt of the measurements was never opened.
            ValueError: an ordinal is negative, or is new in a series whose samples were rolled up.
        """
        groups = _grouped(items)
        if not groups:
            return 0
        with self._write() as connection:
            lock_runs(connection, {key[0] for key in groups})
            known = known_series(connection, {key[:2] for key in groups})
            fresh = [_row(key, group) for key, group in groups.items() if key not in known]
            for start in range(0, len(fresh), BATCH):
                insert(connection, fresh[start : start + BATCH])
            added = sum(int(row[_N]) for row in fresh)
            for key, group in groups.items():
                if key in known:
                    added += extend(connection, key, group, known[key])
        return added

    def of(
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
        """Return the measurements of a run that match all filters, in the order of their key.

        A series whose samples were rolled up returns one measurement: the median, with `stands_for`; an
        evaluation also returns the last sample.
        """
        query = select(series).where(series.c.run == run_id)
        filters = {"step": step, "leg": leg, "attempt": attempt, "node": node, "rank": rank, "phase": phase}
        for name, value in filters.items():
            if value is not None:
                query = query.where(series.c[name] == value)
        if isinstance(metric, str):
            query = query.where(series.c.metric == metric)
        elif metric is not None:
            query = query.where(series.c.metric.in_(list(metric)))
        with self._read() as connection:
            return measurements_of(connection, query)


def insert_new(connection: Connection, items: Iterable[Measurement]) -> None:
    """Store the measurements of new runs, in a transaction of the caller.

    Raises:
        sqlalchemy.exc.IntegrityError: one is stored already, or its attempt is not.
    """
    rows = [_row(key, group) for key, group in _grouped(items).items()]
    for start in range(0, len(rows), BATCH):
        insert(connection, rows[start : start + BATCH])


def measurements_of(connection: Connection, query: Select[Any], most: int = 0) -> list[Measurement]:
    """Yield the measurements of the series that a query returns, in the order of their key.

    Args:
        most: limit for all series together; the longest series are thinned (`packing.unpack`); 0: no limit.
    """
    counts = connection.execute(query.with_only_columns(series.c.n)).scalars().all() if most else []
    limit = limit_of_each(counts, most)
    # Texts of long series are not held in memory together.
    how: dict[str, Any] = {"yield_per": 2} if limit else {}
    ordered = query.order_by(*(series.c[name] for name in KEY))
    rows = connection.execute(ordered, execution_options=how).mappings()
    return [item for row in rows for item in unpack(dict(row), limit)]


def limit_of_each(counts: Sequence[int], most: int) -> int:
    """Return how many samples of one series may be read, so that all series together have about `most`; 0 for
    all."""
    if sum(counts) <= most:
        return 0
    limit = LEAST
    while sum(min(count, 2 * limit) for count in counts) <= most:
        limit *= 2
    return limit


def _grouped(items: Iterable[Measurement]) -> Groups:
    """Group by series, with keys in the databases' form."""
    unconverted: Groups = {}
    for item in items:
        key = _key(item)
        if (group := unconverted.get(key)) is None:
            unconverted[key] = group = []
        group.append(item)
    converted: dict[Any, Any] = {}
    groups: Groups = {}
    for key, group in unconverted.items():
        for part in key:
            if part not in converted:
                converted[part] = storable(str(part)) if isinstance(part, str) else part
        groups.setdefault(tuple(converted[part] for part in key), []).extend(group)
    return groups


def _row(key: Key, group: list[Measurement]) -> Row:
    """Return a new series, in the order of the columns, in the drivers' form."""
    unit, source = group[0].unit, group[0].source
    packed = pack(group, unit, source)
    return (*key, storable(unit), storable(source), *summary(packed), text_of(packed))


def lock_runs(connection: Connection, runs: set[str]) -> None:
    """Wait for other writers of the same runs, until the transaction ends (SQLite does so at BEGIN)."""
    if connection.dialect.name == "postgresql":
        for run in sorted(runs):
            connection.exec_driver_sql(_QUEUE, (_LOCK, run))


def known_series(connection: Connection, steps: set[tuple[str, str]]) -> dict[Key, Known]:
    """Return the stored series of these (run, step)."""
    query = _KNOWN.replace("?", "%s") if connection.dialect.name == "postgresql" else _KNOWN
    stored: dict[Key, Known] = {}
    for step in sorted(steps):
        for row in connection.exec_driver_sql(query, step):
            stored[tuple(row[: len(KEY)])] = dict(zip(_STORED, row, strict=True))
    return stored


def extend(connection: Connection, key: Key, items: list[Measurement], known: Known) -> int:
    """Add the new samples to a series; return their number."""
    whole = known["last_ordinal"] == known["n"] - 1
    if whole and all(0 <= item.ordinal <= known["last_ordinal"] for item in items):
        return 0
    if known["rolled_up_at"] is not None:
        raise ValueError(
            f"the samples of {known['metric']} of run {known['run']} were rolled up: none can be added"
        )
    conditions = [series.c[name] == part for name, part in zip(KEY, key, strict=True)]
    before = packed_of(connection.execute(select(series.c.samples).where(*conditions)).scalar_one())
    there = {row[0] for row in before}
    new = [row for row in pack(items, known["unit"], known["source"]) if row[0] not in there]
    if new:
        packed = sorted([*before, *new], key=lambda row: row[0])
        fields: Mapping[str, Any] = dict(zip(SUMMARY, summary(packed), strict=True))
        connection.execute(update(series).where(*conditions).values(**fields, samples=text_of(packed)))
    return len(new)


def insert(connection: Connection, rows: list[Row]) -> None:
    """Insert directly through the driver, which is several times as fast."""
    if connection.dialect.name == "postgresql":
        _copy(connection, rows)
    else:
        connection.exec_driver_sql(_SQLITE, rows)


def _copy(connection: Connection, rows: list[Row]) -> None:
    driver: Any = connection.connection.dbapi_connection
    base: Any = connection.dialect.loaded_dbapi.Error
    try:
        with driver.cursor() as cursor, cursor.copy(_POSTGRESQL) as copy:
            for row in rows:
                copy.write_row(row)
    except base as error:
        # Raise in SQLAlchemy's form, because callers handle its errors.
        raise DBAPIError.instance(_POSTGRESQL, None, error, base, hide_parameters=True) from error


_N = COLUMNS.index("n")
_NAMES = ", ".join(f'"{name}"' for name in COLUMNS)
_SQLITE = f"INSERT INTO series ({_NAMES}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
_STORED = (*KEY, "unit", "source", "n", "last_ordinal", "rolled_up_at")
_KNOWN = f"SELECT {', '.join(_STORED)} FROM series WHERE run = ? AND step = ?"  # noqa: S608
_QUEUE = "SELECT pg_advisory_xact_lock(%s, hashtext(%s))"
_POSTGRESQL = f"COPY series ({_NAMES}) FROM STDIN"
