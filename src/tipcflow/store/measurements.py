"""Measurements: stored once, whatever happens."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import select

from tipcflow.domain import Measurement
from tipcflow.store.base import StoreBase, insert_new
from tipcflow.store.schema import measurements
from tipcflow.store.types import storable

BATCH = 5000
KEY = ("run", "step", "leg", "attempt", "node", "rank", "metric", "phase", "ordinal")


class MeasurementsMixin(StoreBase):
    """Table measurements."""

    def add_measurements(self, items: Iterable[Measurement]) -> int:
        """Store measurements, all of them or none; those whose key is there already are left as they are.

        Returns:
            How many rows were really added, so that a repeated call returns 0.

        Raises:
            sqlalchemy.exc.IntegrityError: when their attempt was never opened.
        """
        added = 0
        iterator = iter(items)
        with self._write() as connection:
            statement = insert_new(connection, measurements)
            while batch := list(islice(iterator, BATCH)):
                # one order for everybody: two that store the same rows then never wait for each other in a circle
                rows = sorted((_row(item) for item in batch), key=_key)
                added += connection.execute(statement, rows).rowcount
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


def _row(item: Measurement) -> dict[str, Any]:
    return dict(item)


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(storable(value) if isinstance(value, str) else value for value in (row[name] for name in KEY))
