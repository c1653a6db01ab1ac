"""Rows of a scaling table."""

from typing import TYPE_CHECKING

from tipcflow.domain.numbers.units import percentage

if TYPE_CHECKING:
    from tipcflow.parse.scaling.scaling import Scaled

COLUMNS = ("topology", "devices", "repeats", "average", "median", "speed-up", "efficiency")


def scaling_cells(row: "Scaled") -> tuple[str, ...]:
    """Return the cells of a topology: speeds in samples per second, `-` for an unknown speed-up or efficiency."""
    return (
        row.topology,
        str(row.devices),
        str(row.repeats),
        f"{row.average_speed:.2f}",
        f"{row.median_speed:.2f}",
        "-" if row.speedup is None else f"{row.speedup:.2f}",
        "-" if row.efficiency is None else percentage(row.efficiency),
    )
