"""Implausible values in a table of speed-ups: values that a correct measurement hardly ever gives."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from tipcflow.domain.numbers.units import percentage
from tipcflow.parse.scaling.scaling import Scaled

# More devices may be faster than linear by caches and overlap, but not by more than this.
SUPER_LINEAR = 0.05
# Spread of repeats, (maximum - minimum) / median: DLPerf's published repeats differ by 0.3 % to 2 %.
SPREAD = 0.1
# Upper limit of the spread relative to its mean in earlier series, by number of repeats: D4 of Shewhart's R chart,
# mean + 3 standard deviations of the range of normal values. The last value is used for more repeats.
_LIMITS = {2: 3.267, 3: 2.574, 4: 2.282, 5: 2.114, 6: 2.004, 7: 1.924, 8: 1.864, 9: 1.816, 10: 1.777}
# A spread below this is never reported, also if earlier series had hardly any.
_LEAST = 0.02
# Topology and batch size per device -> mean spread in earlier series.
Usual = Mapping[tuple[str, int], float]


def doubts(rows: Iterable[Scaled], usual: Usual | None = None) -> list[str]:
    """Return one note per implausible step or row of a table.

    - The repeats of a topology differ by more than in earlier series, or without these by more than `SPREAD`: no
      value of them is reliable.
    - The next larger topology is faster than linear by more than `SUPER_LINEAR` and the spread of both: one of
      the two measurements is wrong, usually the smaller one (a busy node, another batch size, a slow data loader).
    - It is slower than the smaller one, beyond the spread of both: devices idle or wait for the network.

    Topologies with different batch sizes per device are not compared.

    Args:
        rows: the table of `scaled`, of one or several models.
        usual: of topologies with several earlier series of the same chain.
    """
    models: dict[str, list[Scaled]] = {}
    for row in rows:
        models.setdefault(row.model, []).append(row)
    notes = []
    for model, of_model in models.items():
        of_model.sort(key=lambda row: (row.devices, row.topology))
        name = f"{model}: " if model else ""
        notes += [f"{name}{text}" for text in (*_spreads(of_model, usual or {}), *_steps(of_model, usual or {}))]
    return notes


def _spreads(rows: Sequence[Scaled], usual: Usual) -> Iterable[str]:
    for row in rows:
        spread, mean = spread_of(row), usual.get((row.topology, row.batch_size_per_device))
        limit = SPREAD if mean is None else max(_LEAST, mean * _LIMITS[min(max(_LIMITS), max(2, row.repeats))])
        if spread > limit:
            digits = 0 if mean is None else 1
            earlier = "" if mean is None else f", in earlier series by {percentage(mean, 1)} on average"
            yield (
                f"the {row.repeats} repeats of {row.topology} differ by {percentage(spread, digits)}{earlier}: "
                "repeat them on idle nodes"
            )


def _noise(row: Scaled, usual: Usual) -> float:
    """Return the spread of a topology: that of its repeats, or the usual one if that is larger."""
    return max(spread_of(row), usual.get((row.topology, row.batch_size_per_device), 0.0))


def _steps(rows: Sequence[Scaled], usual: Usual) -> Iterable[str]:
    for small, large in pairwise(rows):
        if small.batch_size_per_device != large.batch_size_per_device or not small.median_speed:
            continue
        noise = _noise(small, usual) + _noise(large, usual)
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
