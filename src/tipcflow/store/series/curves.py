"""Loss curves of a run, without an object per sample: each later run of its chain reads them."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select

from tipcflow.domain import CurveKey, LossKey
from tipcflow.store.schema import series
from tipcflow.store.series.measurements import limit_of_each
from tipcflow.store.series.packing import some_values

_COLUMNS = ("step", "node", "rank", "metric", "samples")


def curves_of(connection: Connection, query: Select[Any], most: int) -> dict[LossKey, tuple[float, ...]]:
    """Return what `losses_of` returns for the measurements of these series.

    Args:
        query: selects series of training losses, of the last attempt of each step.
        most: limit for all series together (`measurements_of`).
    """
    columns = [series.c[name] for name in _COLUMNS]
    counts: Sequence[int] = connection.execute(query.with_only_columns(series.c.n)).scalars().all() if most else ()
    limit = limit_of_each(counts, most)
    total: set[str] = set()
    curves: dict[LossKey, tuple[float, ...]] = {}
    for step, node, rank, metric, samples in connection.execute(query.with_only_columns(*columns)):
        if metric == "loss":
            total.add(step)
        if samples is not None:
            key = LossKey(step, CurveKey(node, rank, "" if metric == "loss" else metric))
            curves[key] = tuple(some_values(samples, limit))
    return {key: curves[key] for key in sorted(curves) if not key.curve.metric or key.step not in total}
