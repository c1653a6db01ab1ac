"""Bulk storage of whole series: columns of values, without an object per value."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from tipcflow.domain import Measurement, Series
from tipcflow.store.base import StoreBase
from tipcflow.store.series.measurements import BATCH, KEY, Key, Known, Row, extend, insert, known_series, lock_runs
from tipcflow.store.types import storable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tipcflow.store.series.columns import Places

# Maximum text per statement, bytes.
_PORTION = 8 << 20


class SeriesMixin(StoreBase):
    """Table series."""

    def add_series(self, items: Iterable[Series]) -> int:
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
            for one in items:
                if len(one):
                    added += writer.add(one)
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

    def add(self, one: Series) -> int:
        """Add a series; return the number of its new samples."""
        from tipcflow.store.series.columns import Places, pack_series

        step = (storable(one.run), storable(one.step))
        if step not in self._steps:
            lock_runs(self._connection, {step[0]})
            self._known |= known_series(self._connection, {step})
            self._steps.add(step)
        key = _key(one)
        if key in self._known:
            return self._extend(key, one)
        self._places = self._places or Places()
        text, summary = pack_series(one, self._places)
        self._rows.append((*key, storable(one.unit), storable(one.source), *summary, text))
        self._size += len(text)
        if self._size > _PORTION or len(self._rows) >= BATCH:
            self.flush()
        return len(one)

    def _extend(self, key: Key, one: Series) -> int:
        known = self._known[key]
        if known["last_ordinal"] == known["n"] - 1 and len(one) <= known["n"]:
            return 0
        return extend(self._connection, key, list(_measurements(one)), known)

    def flush(self) -> None:
        """Write the pending series."""
        if self._rows:
            insert(self._connection, self._rows)
        self._rows, self._size = [], 0


def _key(one: Series) -> Key:
    parts: tuple[Any, ...] = tuple(getattr(one, name) for name in KEY)
    return tuple(storable(str(part)) if isinstance(part, str) else part for part in parts)


def _measurements(one: Series) -> "Iterator[Measurement]":
    """Yield the samples one by one: series rarely grow after they were stored."""
    key = {name: getattr(one, name) for name in KEY}
    changes = dict(one.units)
    unit = one.unit
    for ordinal, value in enumerate(one.values.tolist()):
        unit = changes.get(ordinal, unit)
        yield Measurement(
            **key,
            ordinal=ordinal,
            value=value,
            unit=unit,
            epoch=int(one.epoch[ordinal]),
            iteration=int(one.iteration[ordinal]),
            source=one.source,
            offset=int(one.offset[ordinal]),
        )
