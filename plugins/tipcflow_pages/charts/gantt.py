"""Runs of a node over time: a bar per run, in lanes."""

from collections import defaultdict
from collections.abc import Sequence
from urllib.parse import quote

from markupsafe import Markup, escape

from tipcflow.domain import Status
from tipcflow.domain.numbers.units import counted, duration, utc
from tipcflow.report.overview.nodes import Bar
from tipcflow.report.overview.today import GREEN
from tipcflow_pages.charts.axes import BOX, Axis, per_cent, place, stretched

# Pixels; a green run is half as high as any other, so that they differ by more than their colors.
LANE, GREEN_BAR, BAR = 14, 6, 12
# More lanes are not visible apart.
MOST_LANES = 12
# Bars of a page that have a link and a title of their own.
MOST_LINKED = 300


def gantt(lanes: Sequence[Sequence[Bar]], x: Axis, *, node: str, root: str, linked: bool) -> Markup:
    """Return the chart.

    Args:
        x: the period, seconds since the epoch.
        root: mount point of the pages.
        linked: whether each bar links its run; otherwise bars of one status are one path.
    """
    shown = lanes[:MOST_LANES]
    height = LANE * max(1, len(shown))
    if linked:
        body = "".join(_bar(bar, x, number, root) for number, lane in enumerate(shown) for bar in lane)
    else:
        body = stretched(_paths(shown, x, height), height)
    count = sum(map(len, lanes))
    role = "group" if linked else "img"  # an image must not contain links
    label = escape(f"{counted(count, 'run')} on {node}")
    return Markup(  # noqa: S704 - all texts are escaped
        f'<svg class="plot gantt" width="100%" height="{height}" role="{role}" aria-label="{label}">{body}</svg>'
    )


def _bar(bar: Bar, x: Axis, lane: int, root: str) -> str:
    begin, end = max(bar.started_at, x.low), min(bar.ended_at or x.high, x.high)
    high = GREEN_BAR if bar.status in GREEN else BAR
    status = bar.status.value if bar.status else "running"
    took = f", {duration(bar.ended_at - bar.started_at)}" if bar.ended_at else ""
    title = escape(f"{status}: {bar.chain}, {bar.mode}, from {utc(bar.started_at)}{took}")
    width = f"{max(0.2, 100 * (end - begin) / (x.high - x.low)):.2f}%"
    link = f"{escape(root)}/runs/{quote(bar.run, safe='', errors='replace')}"
    place_of = f'x="{per_cent(x, begin)}" y="{lane * LANE + (LANE - high) // 2}" width="{width}" height="{high}"'
    rect = f'<rect class="st-{status}" {place_of}><title>{title}</title></rect>'
    return f'<a href="{link}" tabindex="-1">{rect}</a>'


def _paths(lanes: Sequence[Sequence[Bar]], x: Axis, height: int) -> list[tuple[str, str]]:
    """Return a path per status; adjacent bars of one lane and status are one line."""
    commands: dict[tuple[Status | None, bool], list[str]] = defaultdict(list)
    for number, lane in enumerate(lanes):
        y = round(BOX * (number + 0.5) * LANE / height)
        ends: dict[Status | None, int] = {}
        for bar in lane:
            begin = place(x, max(bar.started_at, x.low))
            end = max(begin + 1, place(x, min(bar.ended_at or x.high, x.high)))
            own = commands[bar.status, bar.status in GREEN]
            own.append(f"H{end}" if ends.get(bar.status, -9) >= begin - 1 else f"M{begin} {y}H{end}")
            ends = {bar.status: end}
    return [
        (f"bar {'green' if green else 'other'} st-{status.value if status else 'running'}", "".join(own))
        for (status, green), own in commands.items()
    ]
