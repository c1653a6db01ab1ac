"""One metric of a chain over time: the small multiple of the chain's page."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from markupsafe import Markup, escape

from tipcflow.domain import Run
from tipcflow.domain.numbers.units import utc
from tipcflow.report.chain.history import ACCEPTED, MetricHistory
from tipcflow_pages.charts.axes import BOX, Axis, frame, path, per_cent, place, short, stretched

HEIGHT = 110
_MIB = 1 << 20
# More changes than this are a property of the chain, not of a run.
_MOST_CHANGES = 12
# Statuses with a shape of their own; every other one is a square.
_SHAPES = {"regression", "failed", "unconfirmed", "running"}


@dataclass(frozen=True)
class Timeline:
    """What all panels of a chain share.

    Attributes:
        runs: oldest first.
        x: the time axis, seconds since the epoch.
        frameworks, commits: places of the runs, in `runs`, whose framework or suite commit is new.
        root: mount point of the pages.
    """

    runs: tuple[Run, ...]
    x: Axis
    frameworks: tuple[int, ...]
    commits: tuple[int, ...]
    root: str

    @classmethod
    def of(cls, runs: Sequence[Run], root: str) -> "Timeline":
        """Return the timeline of these runs."""
        times = [run.created_at for run in runs]
        x = Axis.around(times, spare=0.02) if len(set(times)) > 1 else Axis(times[0] - 1.0, times[0] + 1.0)
        frameworks = _changes([run.framework for run in runs])
        commits = _changes([run.suite_commit or run.suite_sha256 for run in runs])
        return cls(tuple(runs), x, frameworks, commits, root)

    @property
    def labels(self) -> list[tuple[str, str]]:
        """The dates of the first and the last run."""
        first, last = self.runs[0].created_at, self.runs[-1].created_at
        return [("0%", utc(first)[:10]), ("100%", utc(last)[:10])] if first != last else [("0%", utc(first)[:10])]


def _changes(values: Sequence[str]) -> tuple[int, ...]:
    known: list[int] = []
    before = values[0]
    for at, value in enumerate(values):
        if value and before and value != before:
            known.append(at)
        before = value or before
    return tuple(known)


def panel(row: MetricHistory, timeline: Timeline) -> Markup:
    """Return the chart of a metric.

    Accepted runs are dots on a line; every other run has the shape of its status and links to the run. The band is
    the baseline and the smallest detectable change, from the first run of the baseline's level on. Values far
    outside are at the edge.
    """
    y = _scale(row, timeline.runs)
    accepted = [run.status in ACCEPTED for run in timeline.runs]
    lines, dots = [], []
    for run, value, good in zip(timeline.runs, row.values, accepted, strict=True):
        if good and value is not None:
            inside = _inside(y, value)
            lines.append((run.created_at, inside))
            dots.append(f"M{place(timeline.x, run.created_at)} {BOX - place(y, inside)}h0")
    paths = [
        ("changes", _feet(timeline)),
        ("target", _level(row.target.value, y) if row.target else ""),
        ("pinned", _level(row.pinned, y)),
        ("base", _level(row.base, y, start=_start(row, timeline))),
        ("line", path(lines, timeline.x, y)),
        ("dots", "".join(dots)),
    ]
    body = [*_band(row, timeline, y), *_frameworks(timeline), stretched(paths, HEIGHT)]
    body += [_decided(row, timeline, at) for at in range(len(timeline.runs))]
    body += [
        _mark(run, value, y, timeline)
        for run, value, good in zip(timeline.runs, row.values, accepted, strict=True)
        if value is not None and not good
    ]
    shown = Axis(y.low / _MIB, y.high / _MIB) if row.unit == "bytes" else y
    grid = [(shown.share(tick), short(tick)) for tick in shown.ticks()]
    label = f"{' '.join(filter(None, (row.metric, row.leg)))} over {len(timeline.runs)} runs"
    return frame(body, label=label, height=HEIGHT, x=timeline.labels, y=grid)


def _scale(row: MetricHistory, runs: Sequence[Run]) -> Axis:
    """Return the y axis: of accepted values, the last one, baseline with band, target and pinned value."""
    values = [
        value for run, value in zip(runs, row.values, strict=True) if value is not None and run.status in ACCEPTED
    ]
    values += [value for value in (row.last, row.pinned) if value is not None]
    if row.base is not None:
        # A coarse policy's band must not flatten the line.
        width = abs(row.base) * min(row.smallest or 0.0, 3 * _spread(values, row.base))
        values += [row.base - width, row.base + width]
    if row.target:
        values.append(row.target.value)
    return Axis.around(values)


def _spread(values: Sequence[float], base: float) -> float:
    """Return the largest relative distance from the baseline, at least 1 %."""
    return max([0.01, *(abs(value - base) / abs(base) for value in values)]) if base else 0.01


def _inside(y: Axis, value: float) -> float:
    return min(max(value, y.low), y.high)


def _start(row: MetricHistory, timeline: Timeline) -> float:
    """Return the time of the first run of the baseline's level, or the start of the axis."""
    began = next((run.created_at for run in timeline.runs if run.id == row.since), timeline.x.low)
    return max(began, timeline.x.low)


def _level(value: float | None, y: Axis, *, start: float | None = None) -> str:
    if value is None or not y.low <= value <= y.high:
        return ""
    return f"M0 {BOX - place(y, value)}H{BOX}"


def _band(row: MetricHistory, timeline: Timeline, y: Axis) -> list[str]:
    if row.base is None or row.smallest is None:
        return []
    width = abs(row.base) * row.smallest
    top, foot = (1 - y.share(_inside(y, row.base + sign * width)) for sign in (1, -1))
    left = timeline.x.share(_start(row, timeline))
    size = f'width="{100 * (1 - left):.1f}%" height="{HEIGHT * (foot - top):.1f}"'
    return [f'<rect class="band" x="{100 * left:.1f}%" y="{HEIGHT * top:.1f}" {size}/>']


def _frameworks(timeline: Timeline) -> list[str]:
    if len(timeline.frameworks) > _MOST_CHANGES:
        return []
    lines = []
    for at in timeline.frameworks:
        run = timeline.runs[at]
        x = per_cent(timeline.x, run.created_at)
        title = escape(f"{run.framework}, {utc(run.created_at)[:10]}")
        lines.append(
            f'<line class="framework" x1="{x}" x2="{x}" y1="0" y2="{HEIGHT}"><title>{title}</title></line>'
        )
    return lines


def _feet(timeline: Timeline) -> str:
    """Return ticks at the foot, at the runs with a new suite commit."""
    places = (place(timeline.x, timeline.runs[at].created_at) for at in timeline.commits)
    return "".join(f"M{x} {BOX}V{BOX - 60}" for x in places)


def _decided(row: MetricHistory, timeline: Timeline, at: int) -> str:
    run = timeline.runs[at]
    decisions = [decision for decision in row.decisions if decision.run == run.id]
    if not decisions:
        return ""
    title = escape("; ".join(f"{item.kind} by {item.who}: {item.why}" for item in decisions)[:300])
    x = per_cent(timeline.x, run.created_at)
    return f'<use class="decided" href="#mark-decided" x="{x}" y="6"><title>{title}</title></use>'


def _mark(run: Run, value: float, y: Axis, timeline: Timeline) -> str:
    status = run.status.value if run.status else "running"
    outside = ", outside of the chart" if not y.low <= value <= y.high else ""
    at = f'x="{per_cent(timeline.x, run.created_at)}" y="{HEIGHT * (1 - y.share(_inside(y, value))):.1f}"'
    title = escape(f"{status}, {utc(run.created_at)[:10]}: {value:.6g}{outside}")
    shape = status if status in _SHAPES else "other"
    link = f"{escape(timeline.root)}/runs/{quote(run.id, safe='', errors='replace')}"
    return (
        f'<a href="{link}" tabindex="-1"><use class="st-{status}" href="#mark-{shape}" {at}>'
        f"<title>{title}</title></use></a>"
    )
