"""What a bisection knows: the values of its versions, and their noise."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tipcflow.bisect import Noise
from tipcflow.domain import Run


@dataclass
class Measured:
    """What is known: index of a version -> values and runs.

    Attributes:
        skipped: index -> why the version cannot be measured.
        noise_values: the metric in other accepted runs.
    """

    values: dict[int, list[float]] = field(default_factory=dict)
    runs: dict[int, list[Run]] = field(default_factory=dict)
    skipped: dict[int, str] = field(default_factory=dict)
    noise_values: list[float] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Number of runs."""
        return sum(map(len, self.runs.values()))

    @property
    def seconds(self) -> float:
        """Duration of all runs together."""
        runs = [run for several in self.runs.values() for run in several]
        return sum(run.duration_s or 0.0 for run in runs)

    def scaled(self, *, is_failure: bool) -> tuple[Mapping[int, list[float]], Noise]:
        """Return the values and their noise; logarithms for positive metrics, whose noise is relative."""
        every = [value for several in self.values.values() for value in several] + self.noise_values
        if not is_failure and min(every) > 0:
            scaled = {place: [math.log(value) for value in several] for place, several in self.values.items()}
            earlier = [math.log(value) for value in self.noise_values]
        else:
            scaled, earlier = self.values, self.noise_values
        return scaled, Noise.of(earlier, scaled.get(0, ()))
