"""Statistics of one metric in one file, in bounded memory."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tipcflow.domain import Phase

Floats = npt.NDArray[np.float64]

# Maximum number of values kept for the median; of a longer series, every 2nd, 4th, … value is kept.
KEPT = 1 << 18


class SeriesKey(NamedTuple):
    """The key of a series; rank is -1 if unknown."""

    metric: str
    phase: Phase
    rank: int
    unit: str


class SeriesSummary:
    """Count, first, last, mean, median, minimum and maximum of the values in the order of the log.

    Attributes:
        n: number of values.
        first, last: as printed.
        finite: number of values that are neither nan nor inf; mean, median, min and max cover these (nan if
            none).
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
        """Add the next values, at least one."""
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
        """Return the mean of the finite values."""
        return self._sum / self.finite if self.finite else math.nan

    @property
    def median(self) -> float:
        """Return the median of the finite values; of a regular subsample if `exact` is False."""
        return float(np.median(np.concatenate(self._kept))) if self._kept else math.nan

    @property
    def exact(self) -> bool:
        """Return whether the median covers all values."""
        return self._step == 1
