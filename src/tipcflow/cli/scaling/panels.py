"""Facts of the image of `tipcflow scaling --plot`: one panel per model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.domain.numbers.units import first_names, utc

if TYPE_CHECKING:
    from tipcflow.parse.scaling.scaling import Scaled, Speed
    from tipcflow.report.overview.scaling import ScalingSeries


@dataclass(frozen=True)
class Point:
    """A topology: median in samples/s of all devices, and the speeds of its repeats if known."""

    topology: str
    devices: int
    speed: float
    efficiency: float | None = None
    repeats: tuple[float, ...] = ()


@dataclass(frozen=True)
class Panel:
    """A model.

    Attributes:
        points: the topologies, the fewest devices first.
        previous: of the series that it is compared with; empty without one.
    """

    title: str
    subtitle: str
    points: tuple[Point, ...]
    previous: tuple[Point, ...] = ()
    previous_label: str = "previous"

    @property
    def line(self) -> tuple[Point, ...]:
        """Return the fastest topology of each number of devices."""
        return fastest(self.points)


def fastest(points: Iterable[Point]) -> tuple[Point, ...]:
    """Return the fastest topology of each number of devices, the fewest devices first."""
    best: dict[int, Point] = {}
    for point in points:
        if point.devices not in best or point.speed > best[point.devices].speed:
            best[point.devices] = point
    return tuple(best[devices] for devices in sorted(best))


def panels_of_rows(
    rows: Sequence["Scaled"],
    speeds: Iterable["Speed"] = (),
    *,
    precision: str = "",
    subtitle: str = "",
    before: Iterable["Scaled"] = (),
    previous: "ScalingSeries | None" = None,
) -> list[Panel]:
    """Return the panels of a table.

    Args:
        speeds: from which the table was computed; they have the precision.
        before: the table to compare with, if it is not a stored series.
        previous: the stored series of the rows, whose topologies have the medians of the previous one.
    """
    of_model: dict[str, set[str]] = {}
    for speed in speeds:
        of_model.setdefault(speed.model, set()).add(speed.precision)
    earlier = list(before)
    panels = []
    for model in dict.fromkeys(row.model for row in rows):
        own = sorted((row for row in rows if row.model == model), key=lambda row: (row.devices, row.topology))
        compared = fastest(_point(row) for row in earlier if row.model == model)
        word = precision or " and ".join(sorted(of_model.get(model, set()) - {""}))
        title = ", ".join(filter(None, (model or "training", word, _batch(own))))
        panel = Panel(title, subtitle, tuple(_point(row) for row in own), compared)
        panels.append(_with_previous(panel, previous) if previous else panel)
    return panels


def panel_of_series(series: "ScalingSeries") -> list[Panel]:
    """Return the panel of a stored series; none if no topology has a speed."""
    rows = sorted(
        (row for row in series.topologies if row.median_speed is not None),
        key=lambda row: (row.devices, row.topology),
    )
    points = tuple(Point(row.topology, row.devices, row.median_speed or 0.0, row.efficiency) for row in rows)
    batch = _batch_words({(row.devices, row.batch_size_per_device) for row in rows})
    title = ", ".join(filter(None, (series.chain, series.precision, batch)))
    return [_with_previous(Panel(title, subtitle_of(series), points), series)] if points else []


def subtitle_of(series: "ScalingSeries") -> str:
    """Return where and when a stored series was measured."""
    return f"{series.framework} on {series.cluster}, {utc(series.created_at)}"


def _with_previous(panel: Panel, series: "ScalingSeries") -> Panel:
    points = tuple(
        Point(row.topology, row.devices, row.previous) for row in series.topologies if row.previous is not None
    )
    label = f"previous, run {series.previous}"
    return Panel(panel.title, panel.subtitle, panel.points, fastest(points), label)


def _point(row: "Scaled") -> Point:
    return Point(row.topology, row.devices, row.median_speed, row.efficiency, tuple(row.speeds.values()))


def _batch(rows: Sequence["Scaled"]) -> str:
    return _batch_words({(row.devices, row.batch_size_per_device) for row in rows})


def _batch_words(sizes: set[tuple[int, int]]) -> str:
    """Return the batch size of topologies.

    Args:
        sizes: devices, and batch size of each of them.
    """
    per_device = sorted({batch for _, batch in sizes})
    in_total = {devices * batch for devices, batch in sizes}
    if len(per_device) > 1 and len(in_total) == 1:
        return f"batch size {in_total.pop()} of all devices"
    return f"batch size {first_names(per_device)} per device"
