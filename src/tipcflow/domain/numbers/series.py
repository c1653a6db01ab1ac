"""Series: all values of one metric logged by one process, as columns."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.domain.numbers.measurement import Phase

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Series:
    """The raw samples of one (run, step, leg, attempt, node, rank, metric, phase).

    Attributes:
        values: float64, one value per ordinal, from ordinal 0 on without a gap; nan and inf are values.
        epoch, iteration, offset: int32, int32, int64; as long as `values`, see `Measurement`.
        unit: of the first sample.
        units: (ordinal, unit) for every change of the unit after the first sample.
    """

    run: str
    step: str
    node: str
    metric: str
    phase: Phase
    values: "npt.NDArray[np.float64]"
    epoch: "npt.NDArray[np.int32]"
    iteration: "npt.NDArray[np.int32]"
    offset: "npt.NDArray[np.int64]"
    leg: str = ""
    attempt: int = 1
    rank: int = -1
    unit: str = ""
    source: str = ""
    units: tuple[tuple[int, str], ...] = ()

    def __len__(self) -> int:
        return len(self.values)
