"""Bulk storage of whole series: columns of values, without an object per value."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from tipcflow.domain import Measurement, Series
from tipcflow.store.base import Part
from tipcflow.store.series.measurements import BATCH, KEY, Key, Known, Row, extend, insert, known_series, lock_runs
from tipcflow.store.types import storable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tipcflow.store.series.columns import Places

# Maximum text per statement, bytes.
_PORTION = 8 << 20


class SeriesPart(Part):
    """Table series."""

    def add(self, items: Iterable[Series]) -> int:
        """Store series of one step, all of them or none; samples whose key is already stored are unchanged.

        The series are consumed one by one: only one of them is in memory at a time.

        Returns:
            Number of samples added.

        Raises:
            sqlalchemy.exc.IntegrityError: the attempt of the samples was never opened.
            ValueError: a sample is new in a series whose samples were rolled up.
        """
        added = 0
        with self._write() as connection:
            writer = _Writer(connection)
            for series in items:
                if len(series):
                    added += writer.add(series)
            writer.flush()
        return added


class _Writer:
    """Writes in portions.

    Attributes:
        known: the stored series of the steps seen so far.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._steps: set[tuple[str, str]] = set()
        self._known: dict[Key, Known] = {}
        self._rows: list[Row] = []
        self._size = 0
        self._places: Places | None = None

    def add(self, series: Series) -> int:
        """Add a series; return the number of its new samples."""
        from tipcflow.store.series.columns import Places, pack_series

        step = (storable(series.run), storable(series.step))
        if step not in self._steps:
            lock_runs(self._connection, {step[0]})
            self._known |= known_series(self._connection, {step})
            self._steps.add(step)
        key = _key(series)
        if key in self._known:
            return self._extend(key, series)
        self._places = self._places or Places()
        text, summary = pack_series(series, self._places)
        self._rows.append((*key, storable(series.unit), storable(series.source), *summary, text))
        self._size += len(text)
        if self._size > _PORTION or len(self._rows) >= BATCH:
            self.flush()
        return len(series)

    def _extend(self, key: Key, series: Series) -> int:
        known = self._known[key]
        if known["last_ordinal"] == known["n"] - 1 and len(series) <= known["n"]:
            return 0
        return extend(self._connection, key, list(_measurements(series)), known)

    def flush(self) -> None:
        """Write the pending series."""
        if self._rows:
            insert(self._connection, self._rows)
        self._rows, self._size = [], 0


def _key(series: Series) -> Key:
    parts: tuple[Any, ...] = tuple(getattr(series, name) for name in KEY)
    return tuple(storable(str(part)) if isinstance(part, str) else part for part in parts)


def _measurements(series: Series) -> "Iterator[Measurement]":
    """Yield the samples one by one: series rarely grow after they were stored."""
    key = {name: getattr(series, name) for name in KEY}
    changes = dict(series.units)
    unit = series.unit
    for ordinal, value in enumerate(series.values.tolist()):
        unit = changes.get(ordinal, unit)
        yield Measurement(
            **key,
            ordinal=ordinal,
            value=value,
            unit=unit,
            epoch=int(series.epoch[ordinal]),
            iteration=int(series.iteration[ordinal]),
            source=series.source,
            offset=int(series.offset[ordinal]),
        )
