"""The samples of one metric in one file, summed up in bounded memory."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tipcflow.domain import Phase

Floats = npt.NDArray[np.float64]

# So many values are kept for the median; of a longer series every 2nd, 4th, … one.
KEPT = 1 << 18


class SeriesKey(NamedTuple):
    """What a series is of; rank -1 where no rank was told."""

    metric: str
    phase: Phase
    rank: int
    unit: str


class SeriesSummary:
    """Count, ends, mean, median, extremes of the values in the order of the log.

    Attributes:
        n: how many values there were.
        first, last: as printed.
        finite: how many are neither nan nor inf; mean, median, min and max are theirs (nan when there is none).
    """

    def __init__(self) -> None:
        self.n = self.finite = 0
        self.first = self.last = math.nan
        self.min, self.max = math.inf, -math.inf
        self._sum = 0.0
        self._kept: list[Floats] = []
        self._count = 0
        self._step = 1

    def add(self, values: Floats) -> None:
        """Take the next values, at least one."""
        if not self.n:
            self.first = float(values[0])
        self.last = float(values[-1])
        self.n += len(values)
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(values.sum())
        finite = values
        if not math.isfinite(total):
            finite = values[np.isfinite(values)]
            with np.errstate(over="ignore"):
                total = float(finite.sum())
        if not len(finite):
            return
        self._keep(finite)
        self.finite += len(finite)
        self._sum += total
        self.min = min(self.min, float(finite.min()))
        self.max = max(self.max, float(finite.max()))

    def _keep(self, finite: Floats) -> None:
        kept = finite[-self.finite % self._step :: self._step]
        self._kept.append(kept)
        self._count += len(kept)
        while self._count > KEPT:
            thin = np.concatenate(self._kept)[::2]
            self._kept, self._count, self._step = [thin], len(thin), self._step * 2

    @property
    def mean(self) -> float:
        """Of the finite values."""
        return self._sum / self.finite if self.finite else math.nan

    @property
    def median(self) -> float:
        """Of the finite values; of a regular part of them when `exact` is False."""
        return float(np.median(np.concatenate(self._kept))) if self._kept else math.nan

    @property
    def exact(self) -> bool:
        """Whether the median is that of all values."""
        return self._step == 1
