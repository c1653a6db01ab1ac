"""Throughput over the number of devices: measured, linear, and of the previous series."""

from markupsafe import Markup

from tipcflow.report.overview.scaling import ScalingSeries, TopologyRow
from tipcflow_pages.charts.axes import Axis, frame, path, per_cent, short, stretched

HEIGHT = 220


def scaling_chart(series: ScalingSeries) -> Markup | None:
    """Return the chart of a series; None with fewer than two measured topologies.

    Of topologies with the same number of devices, the line has the fastest; the table lists all of them.
    """
    rows = _fastest(series.topologies)
    if len(rows) < 2:
        return None
    measured = [(float(row.devices), row.median_speed) for row in rows]
    first, last = rows[0], rows[-1]
    per_device = (first.median_speed or 0.0) / first.devices
    linear = [(float(row.devices), per_device * row.devices) for row in (first, last)]
    before = [(float(row.devices), row.previous) for row in rows if row.previous is not None]
    x = Axis.around([at for at, _ in measured], spare=0.02)
    y = Axis.around(
        [0.0, *(value for line in (measured, linear, before) for _, value in line if value is not None)]
    )
    paths = [
        ("series-2", path(linear, x, y)),
        ("series-1", path(before, x, y)),
        ("series-0", path(measured, x, y)),
    ]
    grid = [(y.share(tick), short(tick)) for tick in y.ticks(4)]
    feet = [(per_cent(x, row.devices), f"{row.devices}") for row in rows]
    label = "Samples per second over devices: measured, linear" + (", previous series" if before else "")
    return frame([stretched(paths, HEIGHT)], label=label, height=HEIGHT, x=feet, y=grid)


def _fastest(rows: tuple[TopologyRow, ...]) -> list[TopologyRow]:
    """Return the fastest measured topology for each number of devices, the fewest devices first."""
    best: dict[int, TopologyRow] = {}
    for row in rows:
        known = best.get(row.devices)
        if row.median_speed is not None and (known is None or row.median_speed > (known.median_speed or 0.0)):
            best[row.devices] = row
    return [best[devices] for devices in sorted(best)]
