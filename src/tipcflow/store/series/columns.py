"""Packed columns of a long series: a value takes about 10 bytes instead of 35, and no Python object.

The text remains a JSON array of rows (packing.py), so that databases can read it. It has one row, the last
sample, with its unit and source and, as the eighth element, an object of all samples:

    {"n": 3000000, "value": "i4/100000:…", "epoch": […], "iteration": […], "offset": […], "units": [[0, "s"]]}

A text `i4/100000:…` is Base64 of little-endian integers that are divided by 100000; `f8:…` of IEEE doubles.
`epoch`, `iteration` and `offset` are differences from one sample to the next: `[differences, lengths]` as run
lengths, or `[differences]`.
"""

import binascii
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tipcflow.domain import Series
from tipcflow.store.series.packing import Packed, chosen_of, summary, text_of
from tipcflow.store.types import storable

# Shorter series remain rows of JSON, which SQL can read one by one (view `measurements`).
LONG = 2000
_DECIMALS = (0, 1, 2, 3, 4, 5, 6, 8)
_PROBE = 512
_BLOCK = 1 << 16
_INTEGERS = ("<i1", "<i2", "<i4", "<i8")
_INFINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Columns:
    """The samples of a series; `units` are (first ordinal, unit)."""

    values: Floats
    epoch: Ints
    iteration: Ints
    offset: Ints
    units: tuple[tuple[int, str], ...]
    source: str

    def rows(self) -> Iterator[list[Any]]:
        """Yield rows in the form of packing.py, with unit and source."""
        columns = [column.tolist() for column in (self.values, self.epoch, self.iteration, self.offset)]
        starts = [start for start, _ in self.units]
        segments = np.searchsorted(starts, np.arange(len(self.values)), side="right").tolist()
        for number, (value, *place, unit) in enumerate(zip(*columns, segments, strict=True)):
            yield [number, _encoded(value), *place, self.units[unit - 1][1], self.source]


class Places:
    """The packed epochs, iterations and offsets of the last series, because most metrics of a log are printed
    by the same lines."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Array, list[str]]] = {}

    def texts(self, name: str, column: Array) -> list[str]:
        """Return the packed column; it is packed again only if it differs from that of the last series."""
        known = self._last.get(name)
        if known is None or not (known[0] is column or np.array_equal(known[0], column)):
            known = self._last[name] = (column, _differences(column))
        return known[1]


def pack_series(series: Series, places: Places | None = None) -> tuple[str, tuple[Any, ...]]:
    """Return the text of a series and the columns of SUMMARY.

    Args:
        places: shared by consecutive series of a log.
    """
    units = ((0, storable(series.unit)), *((start, storable(unit)) for start, unit in series.units))
    if len(series) <= LONG:
        columns = (
            series.values.tolist(),
            series.epoch.tolist(),
            series.iteration.tolist(),
            series.offset.tolist(),
        )
        rows: Packed = [
            [number, _encoded(row[0]), *row[1:]] for number, row in enumerate(zip(*columns, strict=True))
        ]
        ends = [*(start for start, _ in units[1:]), len(rows)]
        for (start, unit), end in zip(units, ends, strict=True):
            if unit != units[0][1]:
                rows[start:end] = [[*row, unit, storable(series.source)] for row in rows[start:end]]
        return text_of(rows), summary(rows)
    facts = _summary(series.values)  # first: its sorted copy is freed before the text is made
    return _text(series, units, places or Places()), facts


def columns_of(row: Sequence[Any]) -> Columns:
    """Unpack the result of `pack_series` from the only row of the text."""
    packed = row[7]
    epoch, iteration, offset = (_summed(packed[name]) for name in ("epoch", "iteration", "offset"))
    units = tuple((int(start), str(unit)) for start, unit in packed["units"])
    return Columns(_floats(packed["value"]), epoch, iteration, offset, units, str(row[6]))


def floats_of(row: Sequence[Any]) -> list[float]:
    """Unpack the values only."""
    values: list[float] = _floats(row[7]["value"]).tolist()
    return values


def some_rows(row: Sequence[Any], most: int) -> Iterator[list[Any]]:
    """Yield a sample of a packed series like `Columns.rows`: at most `most` + 1, and as many that are not finite.

    One column after the other is unpacked: a long series takes 8 bytes per sample instead of 32.
    """
    packed = row[7]
    values = _floats(packed["value"])
    chosen = np.asarray(chosen_of(len(values), np.flatnonzero(~np.isfinite(values)).tolist(), most), dtype=np.intp)
    values = values[chosen]
    places = [_summed(packed[name])[chosen] for name in ("epoch", "iteration", "offset")]
    units = tuple((int(start), str(unit)) for start, unit in packed["units"])
    segments = np.searchsorted([start for start, _ in units], chosen, side="right").tolist()
    columns = [column.tolist() for column in (chosen, values, *places)]
    for number, value, epoch, iteration, offset, unit in zip(*columns, segments, strict=True):
        yield [number, _encoded(value), epoch, iteration, offset, units[unit - 1][1], str(row[6])]


def _encoded(value: float) -> float | str | None:
    return value if math.isfinite(value) else _INFINITE.get(value)


def _text(series: Series, units: Sequence[tuple[int, str]], places: Places) -> str:
    last = len(series) - 1
    head = [
        last,
        _encoded(float(series.values[-1])),
        int(series.epoch[-1]),
        int(series.iteration[-1]),
        int(series.offset[-1]),
    ]
    packed = {"n": len(series), "units": units}
    row = [*head, units[-1][1], storable(series.source), packed]
    # The columns are joined by hand: Base64 needs no escapes, and an encoder would search for them.
    # One join of all pieces: each column is megabytes long, and a copy of it would be, too.
    pieces = [json.dumps([row], separators=(",", ":"), allow_nan=False)[: -len("}]]")], ',"value":"']
    pieces += [_packed_floats(series.values), '"']
    for name in ("epoch", "iteration", "offset"):
        pieces.append(f',"{name}":[')
        for number, text in enumerate(places.texts(name, getattr(series, name))):
            pieces += [',"' if number else '"', text, '"']
        pieces.append("]")
    pieces.append("}]]")
    return "".join(pieces)


def _base64(array: Array, kind: str) -> str:
    return f"{kind}:{binascii.b2a_base64(np.ascontiguousarray(array).data, newline=False).decode('ascii')}"


def _unpacked(text: str) -> tuple[Array, float]:
    """Return the integers or doubles of a packed text, and their divisor."""
    kind, _, data = text.partition(":")
    name, _, scale = kind.partition("/")
    return np.frombuffer(binascii.a2b_base64(data), dtype=f"<{name}"), float(scale or 1)


def _packed_floats(values: Floats) -> str:
    for decimals in _DECIMALS:
        scale = 10.0**decimals
        if _scaled(values[:_PROBE], scale) is not None:
            whole = _scaled(values, scale)
            if whole is not None:
                return _smallest(whole, f"/{10**decimals}" if decimals else "")
    return _base64(values.astype("<f8"), "f8")


def _scaled(values: Floats, scale: float) -> Ints | None:
    """Return the values as integers that give exactly these values after division by `scale`; None if inexact."""
    whole = np.empty(len(values), np.int64)
    for start in range(0, len(values), _BLOCK):  # the temporary arrays of a whole series would be large
        part = values[start : start + _BLOCK]
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.rint(part * scale)
            if not (np.abs(scaled) < 2**53).all():  # also false for nan
                return None
            integers = scaled.astype(np.int64)
            if not ((integers / scale).view(np.int64) == part.view(np.int64)).all():
                return None
        whole[start : start + _BLOCK] = integers
    return whole


def _floats(text: str) -> Floats:
    numbers, scale = _unpacked(text)
    return numbers.astype(np.float64) if scale == 1 else numbers / scale


def _smallest(whole: Ints, tail: str = "") -> str:
    """Pack integers in the smallest type that holds all of them."""
    low, high = (int(whole.min()), int(whole.max())) if len(whole) else (0, 0)
    for kind in _INTEGERS:
        info = np.iinfo(kind)
        if info.min <= low and high <= info.max:
            return _base64(whole.astype(kind), f"{kind[1:]}{tail}")
    raise AssertionError("64 bits hold every int64")


def _differences(column: Array) -> list[str]:
    whole: Ints = column.astype(np.int64)
    steps: Ints = whole.copy()
    steps[1:] -= whole[:-1]
    ends = np.flatnonzero(np.diff(steps)) + 1
    if (len(ends) + 1) * 4 < len(steps):
        starts = np.concatenate(([0], ends))
        return [_smallest(steps[starts]), _smallest(np.append(ends, len(steps)) - starts)]
    return [_smallest(steps)]


def _summed(packed: Sequence[str]) -> Ints:
    steps = _unpacked(packed[0])[0].astype(np.int64)
    if len(packed) > 1:
        steps = np.repeat(steps, _unpacked(packed[1])[0])
    return np.cumsum(steps, out=steps)


def _summary(values: Floats) -> tuple[Any, ...]:
    """Like packing.summary; the mean may differ from it in the last digit."""
    last = None if math.isnan(values[-1]) else float(values[-1])
    finite = values[np.isfinite(values)]
    head = (len(values), len(values) - 1, len(finite))
    if not len(finite):
        return (*head, None, None, None, None, None, None, last)
    with np.errstate(over="ignore"):
        mean = float(finite.sum()) / len(finite)
    top = len(finite) - 1
    finite.sort()  # uses the CPU's vector instructions: faster than a partition at several positions

    def at(share: float) -> float:
        low, high = _between(share * top)
        part = share * top - low
        return float(finite[low] if not part else finite[low] * (1 - part) + finite[high] * part)

    low, high = _between(0.5 * top)
    middle = float(finite[low] + finite[high]) / 2
    return (*head, mean, middle, at(0.1), at(0.9), float(finite[0]), float(finite[top]), last)


def _between(position: float) -> tuple[int, int]:
    return math.floor(position), math.ceil(position)
