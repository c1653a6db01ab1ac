"""Format of a series as one row: its samples as JSON text, and a summary that is sufficient for most readers.

The text is an array of `[ordinal, value, epoch, iteration, offset]` in the order of the ordinals; unit and
source follow if they differ from those of the series. A long series is packed into one row (columns.py). nan
is stored as null, and inf as the text "Infinity", because databases read the JSON too (view `measurements`).
Reasons for this format: docs/adr, "Store samples as series".
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from operator import attrgetter
from statistics import median
from typing import Any

from tipcflow.domain import Measurement, Phase
from tipcflow.store.types import storable

SUMMARY = ("n", "last_ordinal", "finite", "mean", "median", "p10", "p90", "lowest", "highest", "last")
# For a series of this many samples or fewer, the rolled-up row is not smaller than the samples.
KEPT = 7
# Ordinal, value, epoch, iteration, offset, unit, source.
_ROW_LENGTH = 7
Packed = list[Sequence[Any]]
_FIELDS = set(Measurement.model_fields)
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_INFINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}
_ROW = attrgetter("ordinal", "value", "epoch", "iteration", "offset")
_OWN = attrgetter("unit", "source", "stands_for")


def pack(items: Iterable[Measurement], unit: str, source: str) -> Packed:
    """Return the samples of a series as rows of its JSON, by ordinal; of samples with the same ordinal, the
    first is used.

    Args:
        unit, source: those of the series, which samples need not repeat.

    Raises:
        ValueError: an ordinal is negative, or a value is not a raw sample.
    """
    measurements = list(items)
    if set(map(_OWN, measurements)) == {(unit, source, 1)}:
        rows: Packed = list(map(_ROW, measurements))
        if [row[0] for row in rows] == list(range(len(rows))) and all(isfinite(row[1]) for row in rows):
            return rows
    return _packed_one_by_one(measurements, unit, source)


def _packed_one_by_one(items: Iterable[Measurement], unit: str, source: str) -> Packed:
    """The same for the exceptional series; nearly all series start at 0, have no gaps, are all finite, and are
    from one log."""
    rows: dict[int, Sequence[Any]] = {}
    for item in items:
        if item.ordinal < 0 or item.stands_for != 1:
            raise ValueError(f"{item.metric}: an ordinal counts from 0, and only raw samples are stored")
        row = [*_ROW(item)]
        row[1] = row[1] if isfinite(row[1]) else _INFINITE.get(row[1])
        if item.unit != unit or item.source != source:
            row += [storable(item.unit), storable(item.source)]
        rows.setdefault(item.ordinal, row)
    return [rows[ordinal] for ordinal in sorted(rows)]


def text_of(packed: Packed) -> str:
    """Return the JSON text of packed samples."""
    return _ENCODER.encode(packed)


def packed_of(text: str) -> Packed:
    """Return the rows of a series, for both forms of its text."""
    packed: Packed = json.loads(text)
    if is_long(packed):
        from tipcflow.store.series.columns import columns_of

        return list(columns_of(packed[0]).rows())
    return packed


def is_long(packed: Packed) -> bool:
    """Return whether the text has a single row that holds all samples as columns (columns.py)."""
    return len(packed) == 1 and len(packed[0]) > _ROW_LENGTH


def value_of(encoded: float | str | None) -> float:
    """Convert a value from its JSON form."""
    return math.nan if encoded is None else float(encoded)


def values_of(text: str) -> list[float]:
    """Return the values of a series in order, including nan and inf."""
    packed: Packed = json.loads(text)
    if is_long(packed):
        from tipcflow.store.series.columns import floats_of

        return floats_of(packed[0])
    return [value_of(row[1]) for row in packed]


def some_values(text: str, most: int) -> list[float]:
    """Return the values of a series in order, all or some (`unpack`), including nan and inf."""
    return [value_of(row[1]) for row in _some(text, most)] if most else values_of(text)


def summary(packed: Packed) -> tuple[Any, ...]:
    """Return the columns of SUMMARY: number of samples, and of the finite samples mean, median, 10th and 90th
    percentile (linear interpolation), minimum and maximum; None if a series has none. `last` may be nan or
    inf."""
    values = sorted(row[1] for row in packed if isinstance(row[1], int | float))
    encoded = packed[-1][1]
    last = None if encoded is None else value_of(encoded)
    head = (len(packed), packed[-1][0], len(values))
    if not values:
        return (*head, None, None, None, None, None, None, last)
    mean = sum(values) / len(values)
    ends = (values[0], values[-1])
    return (*head, mean, median(values), percentile(values, 0.1), percentile(values, 0.9), *ends, last)


def _some(text: str, most: int) -> Iterable[Sequence[Any]]:
    """Yield the rows of a series, all or some (`unpack`)."""
    packed: Packed = json.loads(text)
    if is_long(packed):
        from tipcflow.store.series.columns import columns_of, some_rows

        return some_rows(packed[0], most) if 0 < most < packed[0][7]["n"] else columns_of(packed[0]).rows()
    if not most or len(packed) <= most:
        return packed
    broken = [number for number, row in enumerate(packed) if not isinstance(row[1], int | float)]
    return [packed[number] for number in chosen_of(len(packed), broken, most)]


def chosen_of(n: int, broken: Sequence[int], most: int) -> Sequence[int]:
    """Return the ordinals that represent n samples (`spread`), with some of those that are not finite."""
    return sorted({*spread(n, most), *broken[:most]})


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return a percentile of ascending values, with linear interpolation between the two nearest."""
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    part = position - low
    if not part:
        return ordered[low]
    return ordered[low] * (1 - part) + ordered[low + 1] * part


def spread(n: int, most: int) -> Sequence[int]:
    """Return the ordinals of at most `most` + 1 of n samples: the last, and every 2nd, 4th, 8th … one, so that
    two runs of about the same length get the same ordinals."""
    step = 1
    while n > step * most:
        step *= 2
    chosen = range(0, n, step)
    return chosen if chosen[-1] == n - 1 else [*chosen, n - 1]


def unpack(row: Mapping[str, Any], most: int = 0) -> Iterator[Measurement]:
    """Yield the measurements of a row of the table, by ordinal.

    If the samples were rolled up, the median represents all of them. In an evaluation, the last sample
    follows, because runs are judged and compared by it.

    Args:
        most: limit for the samples of a long series (`spread`), plus at most as many that are not finite; 0:
            no limit.
    """
    key = {name: row[name] for name in ("run", "step", "leg", "attempt", "node", "rank", "metric")}
    key["phase"] = Phase(row["phase"])
    unit, source = row["unit"], row["source"]
    if row["samples"] is None:
        value = math.nan if row["median"] is None else row["median"]
        n, last = row["n"], row["phase"] == Phase.EVAL
        if n > last:
            yield Measurement(**key, value=value, unit=unit, source=source, stands_for=n - last)
        if last:
            value = math.nan if row["last"] is None else row["last"]
            yield Measurement(**key, ordinal=row["last_ordinal"], value=value, unit=unit, source=source)
        return
    for ordinal, encoded, epoch, iteration, offset, *own in _some(row["samples"], most):
        # Measurements were validated before they were stored; a field set for each would double the memory.
        yield Measurement.model_construct(
            _FIELDS,
            **key,
            stands_for=1,
            ordinal=ordinal,
            value=value_of(encoded),
            unit=own[0] if own else unit,
            epoch=epoch,
            iteration=iteration,
            source=own[1] if own else source,
            offset=offset,
        )
