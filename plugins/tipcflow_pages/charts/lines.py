"""Several metrics over time on one pair of axes."""

from urllib.parse import quote

from markupsafe import Markup, escape

from tipcflow.domain.numbers.units import utc
from tipcflow.report.chain.series import Line, Point, SeriesOverview
from tipcflow_pages.charts.axes import Axis, frame, path, per_cent, short, stretched

HEIGHT = 320
# Marks of runs that did not pass; more are in the table.
_MARKS = 200
_SHAPES = {"regression", "failed", "unconfirmed", "running"}


def value_of(point: Point, *, relative: bool) -> float | None:
    """Return what the chart shows of a point."""
    return point.percent if relative else point.value


def lines_chart(overview: SeriesOverview, *, root: str) -> Markup:
    """Return the chart: a line through accepted runs, and a mark that links each other run.

    Args:
        root: mount point of the pages.
    """
    shown = [
        [(point, value_of(point, relative=overview.relative)) for point in line.points] for line in overview.lines
    ]
    times = [point.at for points in shown for point, _ in points] or [0.0]
    x = Axis.around(times, spare=0.02) if len(set(times)) > 1 else Axis(times[0] - 1.0, times[0] + 1.0)
    good = [value for points in shown for point, value in points if value is not None and point.is_accepted]
    y = Axis.around(good or [value for points in shown for _, value in points if value is not None])
    paths, marks = [], []
    for number, points in enumerate(shown):
        accepted = [(point.at, value) for point, value in points if point.is_accepted and value is not None]
        paths.append((f"series-{number}", path(accepted, x, y)))
        marks += [
            _mark(point, value, x, y, root)
            for point, value in points
            if value is not None and not point.is_accepted
        ]
    unit = " %" if overview.relative else ""
    grid = [(y.share(tick), f"{short(tick)}{unit}") for tick in y.ticks(6)]
    feet = [(per_cent(x, at), utc(at)[:10]) for at in sorted({min(times), max(times)})]
    body = [stretched(paths, HEIGHT), *marks[:_MARKS]]
    return frame(body, label=f"{len(shown)} lines over time", height=HEIGHT, x=feet, y=grid)


def _mark(point: Point, value: float, x: Axis, y: Axis, root: str) -> str:
    status = point.status.value if point.status else "running"
    shape = status if status in _SHAPES else "other"
    inside = min(max(value, y.low), y.high)
    at = f'x="{per_cent(x, point.at)}" y="{HEIGHT * (1 - y.share(inside)):.1f}"'
    title = escape(f"{status}, {utc(point.at)[:10]}: {point.value:.6g}")
    link = f"{escape(root)}/runs/{quote(point.run, safe='', errors='replace')}"
    use = f'<use class="st-{status}" href="#mark-{shape}" {at}><title>{title}</title></use>'
    return f'<a href="{link}" tabindex="-1">{use}</a>'


def last_text(line: Line) -> str:
    """Return the newest value against the reference: `+1.2 %`; '' without one."""
    last = line.last
    return f"{last.percent - 100:+.1f} %" if last is not None and last.percent is not None else ""
