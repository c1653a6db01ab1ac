"""Ranks that hardly compute while the other ranks of their training do."""

import statistics
from collections.abc import Iterable
from typing import NamedTuple

from tipcflow.domain.numbers.units import percentage

# A rank idles if its share of a CPU core is below this share of the median of the other ranks. Ranks that wait for
# each other in NCCL or gloo spin: their share is as high as that of ranks that compute.
IDLE = 0.25
# Other ranks below this share of a core are no reference: the training waits for data or computes on a GPU only.
LEAST = 0.2
# A rank that was observed for less time mostly imported the framework.
LEAST_S = 10.0


class Load(NamedTuple):
    """A rank of a training: for how long it was observed, and the CPU seconds that it used."""

    step: str
    node: str
    rank: int
    seconds: float
    cpu_s: float

    @property
    def share(self) -> float:
        """Return CPU seconds per second: 1.0 is one core."""
        return self.cpu_s / self.seconds


def idle_ranks(loads: Iterable[Load]) -> list[str]:
    """Return one note per rank that idles; of several steps, the first in which it does."""
    steps: dict[str, list[Load]] = {}
    for load in loads:
        if load.seconds >= LEAST_S:
            steps.setdefault(load.step, []).append(load)
    notes: dict[tuple[str, int], str] = {}
    for step, ranks in steps.items():
        for load in ranks:
            others = [other.share for other in ranks if other is not load]
            usual = statistics.median(others) if others else 0.0
            if usual >= LEAST and load.share < IDLE * usual:
                notes.setdefault(
                    (load.node, load.rank),
                    f"{step}: rank {load.rank} on {load.node} idles: it used {percentage(load.share, 0)} of a "
                    f"CPU core, the other ranks {percentage(usual, 0)}",
                )
    return list(notes.values())
