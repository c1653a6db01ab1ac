"""Implausible values in a table of speed-ups: values that a correct measurement hardly ever gives."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from tipcflow.domain.numbers.units import percentage
from tipcflow.parse.scaling.scaling import Scaled

# More devices may be faster than linear by caches and overlap, but not by more than this.
SUPER_LINEAR = 0.05
# Spread of repeats, (maximum - minimum) / median: DLPerf's published repeats differ by 0.3 % to 2 %.
SPREAD = 0.1


def doubts(rows: Iterable[Scaled]) -> list[str]:
    """Return one note per implausible step or row of a table.

    - The repeats of a topology differ by more than `SPREAD`: no value of them is reliable.
    - The next larger topology is faster than linear by more than `SUPER_LINEAR` and the spread of both: one of
      the two measurements is wrong, usually the smaller one (a busy node, another batch size, a slow data loader).
    - It is slower than the smaller one, beyond the spread of both: devices idle or wait for the network.

    Topologies with different batch sizes per device are not compared.

    Args:
        rows: the table of `scaled`, of one or several models.
    """
    models: dict[str, list[Scaled]] = {}
    for row in rows:
        models.setdefault(row.model, []).append(row)
    notes = []
    for model, of_model in models.items():
        of_model.sort(key=lambda row: (row.devices, row.topology))
        name = f"{model}: " if model else ""
        notes += [f"{name}{text}" for text in (*_spreads(of_model), *_steps(of_model))]
    return notes


def _spreads(rows: Sequence[Scaled]) -> Iterable[str]:
    for row in rows:
        if (spread := spread_of(row)) > SPREAD:
            yield (
                f"the {row.repeats} repeats of {row.topology} differ by {percentage(spread, 0)}: "
                "repeat them on idle nodes"
            )


def _steps(rows: Sequence[Scaled]) -> Iterable[str]:
    for small, large in pairwise(rows):
        if small.batch_size_per_device != large.batch_size_per_device or not small.median_speed:
            continue
        noise = spread_of(small) + spread_of(large)
        devices, times = large.devices / small.devices, large.median_speed / small.median_speed
        step = (
            f"{large.topology} is {times:.2f} times as fast as {small.topology} with {devices:g} times the devices"
        )
        if times > devices * (1 + SUPER_LINEAR + noise):
            yield f"{step}, more than linear: check the measurement of {small.topology}"
        elif devices > 1 and times < 1 - noise:
            yield f"{step}: check for idle devices, a slow network, or nodes that share their CPUs"


def spread_of(row: Scaled) -> float:
    """Return (maximum - minimum) / median of the repeats; 0 of a single one."""
    values = row.speeds.values()
    return (max(values) - min(values)) / row.median_speed if len(values) > 1 and row.median_speed else 0.0
