"""The metrics of one log, grouped by series: in memory up to a limit, then in files."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tipcflow.domain import Phase
from tipcflow.parse.bulk.batch import Batch, Column

# Memory limit for the metrics of one log, all series together, bytes.
IN_MEMORY = 64 << 20
_TYPES = {"values": np.float64, "epoch": np.int32, "iteration": np.int32, "offset": np.int64}

_PLACES = ("epoch", "iteration", "offset")


class Logged(NamedTuple):
    """The samples of one metric of one rank in log order; `units` are (first sample, unit)."""

    metric: str
    phase: Phase
    rank: int
    values: npt.NDArray[np.float64]
    epoch: npt.NDArray[np.int32]
    iteration: npt.NDArray[np.int32]
    offset: npt.NDArray[np.int64]
    units: tuple[tuple[int, str], ...]

    def since(self, offset: int) -> "Logged":
        """Return only the samples of lines that begin at or after this byte of the log."""
        first = int(np.searchsorted(self.offset, offset))
        if not first:
            return self
        units = [(max(0, start - first), unit) for start, unit in self.units]
        kept = [pair for pair, later in zip(units, [*units[1:], (1, "")], strict=True) if later[0] > 0]
        cut = {name: getattr(self, name)[first:] for name in _TYPES}
        return self._replace(**cut, units=tuple(kept))


class _Entry:
    """One series: its part in memory and its files."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.count = 0
        self.units: list[tuple[int, str]] = []
        self.pieces: list[Column] = []


class Spool:
    """Context manager; removes its files on exit.

    Args:
        folder: folder for the files.
        rank: rank of lines that name none.
    """

    def __init__(self, folder: Path, *, rank: int = -1, in_memory: int = IN_MEMORY) -> None:
        self._folder, self._rank, self._most = folder, rank, in_memory
        self._entries: dict[tuple[int, str, Phase], _Entry] = {}
        self._held = 0
        self._files: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._files is not None:
            self._files.cleanup()

    def add(self, batch: Batch) -> None:
        """Add the samples of the next part of the log."""
        groups: dict[tuple[int, str, Phase], list[tuple[str, Column]]] = {}
        for (metric, phase, unit), column in batch.columns.items():
            for rank, part in _by_rank(column):
                key = (self._rank if rank < 0 else rank, metric, phase)
                groups.setdefault(key, []).append((unit, part))
        for key, parts in groups.items():
            entry = self._entries.setdefault(key, _Entry(len(self._entries)))
            for unit, part in _in_order(parts):
                if not entry.units or entry.units[-1][1] != unit:
                    entry.units.append((entry.count, unit))
                entry.count += len(part.values)
                entry.pieces.append(part)
                self._held += sum(getattr(part, name).nbytes for name in _TYPES)
        if self._held > self._most:
            self._spill()

    def series(self) -> Iterator[Logged]:
        """Yield all series in order of first appearance.

        Consecutive series that were logged by the same lines, as most are, share their epochs, iterations and
        offsets, so that two long series take less memory.
        """
        places: dict[str, npt.NDArray[Any]] = {}
        for (rank, metric, phase), entry in self._entries.items():
            for name in _PLACES:
                column = self._column(entry, name)
                if name not in places or not np.array_equal(places[name], column):
                    places[name] = column
                del column
            values = self._column(entry, "values")
            yield Logged(metric, phase, rank, values, **places, units=tuple(entry.units))
            del values

    def _column(self, entry: _Entry, name: str) -> npt.NDArray[Any]:
        path = self._path(entry, name)
        parts = [np.fromfile(path, _TYPES[name])] if path is not None and path.exists() else []
        parts += [getattr(piece, name) for piece in entry.pieces]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _path(self, entry: _Entry, name: str) -> Path | None:
        return None if self._files is None else Path(self._files.name) / f"{entry.number}.{name}"

    def _spill(self) -> None:
        """Move everything from memory to the files."""
        if self._files is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._files = tempfile.TemporaryDirectory(prefix=".series.", dir=self._folder)
        for entry in self._entries.values():
            for name, kind in _TYPES.items():
                if entry.pieces and (path := self._path(entry, name)) is not None:
                    with path.open("ab", buffering=0) as file:
                        for piece in entry.pieces:
                            _write(file.fileno(), np.ascontiguousarray(getattr(piece, name), kind))
            entry.pieces = []
        self._held = 0


def _write(file: int, array: npt.NDArray[Any]) -> None:
    left = array.data.cast("B")
    while left:
        left = left[os.write(file, left) :]


def _by_rank(column: Column) -> Iterator[tuple[int, Column]]:
    """Yield the column's samples by the rank named in their lines, -1 for none."""
    first = int(column.rank[0])
    if (column.rank == first).all():
        yield first, column
        return
    for rank in np.unique(column.rank).tolist():
        yield rank, _chosen(column, column.rank == rank)


def _in_order(parts: list[tuple[str, Column]]) -> Iterator[tuple[str, Column]]:
    """Yield the samples of a series in log order by unit; most series have one unit."""
    if len(parts) == 1:
        yield parts[0]
        return
    offsets = np.concatenate([part.offset for _, part in parts])
    unit_of = np.repeat(np.arange(len(parts)), [len(part.offset) for _, part in parts])
    order = np.argsort(offsets, kind="stable")
    whole = Column(
        *(np.concatenate([getattr(part, name) for _, part in parts]) for name in Column.__annotations__)
    )
    units = unit_of[order]
    for places in np.split(np.arange(len(order)), np.flatnonzero(np.diff(units)) + 1):
        yield parts[units[places[0]]][0], _chosen(whole, order[places])


def _chosen(column: Column, which: npt.NDArray[Any]) -> Column:
    return Column(*(getattr(column, name)[which] for name in Column.__annotations__))
