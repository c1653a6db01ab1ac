"""Metrics of several chains over time, as lines of one chart."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pydantic import BaseModel, ConfigDict

from tipcflow.domain import MetricKey, Run, Status
from tipcflow.domain.keys import TextKey
from tipcflow.domain.numbers.metrics import metric
from tipcflow.domain.numbers.units import iso
from tipcflow.domain.run.names import StepId
from tipcflow.report.chain.history import ACCEPTED
from tipcflow.report.comparison.tables import as_csv

MOST_LINES = 8
# Accepted runs at the start of a line whose median is 100 %.
_REFERENCE = 5


@dataclass(frozen=True, order=True, slots=True)
class LineKey(TextKey):
    """A metric of a chain in one mode, semantics and environment class. The text is its parts joined by `|`."""

    chain: str
    mode: str
    environment: str
    compat: str
    step: str
    leg: str
    metric: str

    @property
    def group(self) -> tuple[str, str, str, str]:
        """What selects its runs."""
        return self.chain, self.mode, self.environment, self.compat

    @property
    def key(self) -> MetricKey:
        """The metric of a run."""
        return MetricKey(self.step, self.leg, self.metric)


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Point(_Model):
    """The value in one run. `percent` is relative to the reference of the line, None without one."""

    run: str
    at: float
    status: Status | None
    framework: str
    suite_commit: str
    value: float
    percent: float | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether the run passed."""
        return self.status in ACCEPTED


class Line(_Model):
    """One line.

    Attributes:
        text: its name in URLs.
        name: metric and leg, or the last part of the step.
        better: `higher`, `lower`, or `none`.
        reference: median of the first accepted runs, which is 100 %; None without one.
        points: oldest first.
        coarse: number of runs whose values are medians of whole series, which include the warm-up.
    """

    text: str
    name: str
    chain: str
    mode: str
    environment: str
    semantics: str
    step: str
    leg: str
    metric: str
    unit: str
    better: str
    reference: float | None
    points: tuple[Point, ...]
    coarse: int = 0

    @property
    def last(self) -> Point | None:
        """The newest point; None without one."""
        return self.points[-1] if self.points else None


class SeriesOverview(_Model):
    """Everything that the page shows.

    Attributes:
        relative: whether values are shown in percent of each line's reference.
        since, until: limits of the runs, seconds since the epoch; None without one.
    """

    schema_version: int = 1
    relative: bool
    since: float | None
    until: float | None
    lines: tuple[Line, ...]


def line_of(key: LineKey, runs: Sequence[Run], values: Sequence[float | None], coarse: int) -> Line:
    """Return a line.

    Args:
        runs: oldest first.
        values: of each run; None where it has none.
    """
    known = [(run, value) for run, value in zip(runs, values, strict=True) if value is not None]
    first = [value for run, value in known if run.status in ACCEPTED][:_REFERENCE]
    reference = median(first) if first else None
    definition = metric(key.key.plain_metric)
    return Line(
        text=str(key),
        name=" ".join(filter(None, (key.metric, key.leg or StepId.parse(key.step).name))),
        chain=key.chain,
        mode=key.mode,
        environment=key.environment,
        semantics=key.compat,
        step=key.step,
        leg=key.leg,
        metric=key.metric,
        unit=definition.unit,
        better=definition.better,
        reference=reference,
        points=tuple(_point(run, value, reference) for run, value in known),
        coarse=coarse,
    )


def _point(run: Run, value: float, reference: float | None) -> Point:
    return Point(
        run=run.id,
        at=run.created_at,
        status=run.status,
        framework=run.framework,
        suite_commit=run.suite_commit,
        value=value,
        percent=100 * value / reference if reference else None,
    )


def series_csv(overview: SeriesOverview) -> str:
    """Return a row per point, line by line, oldest run first; times are ISO 8601."""
    of_line = ("chain", "mode", "environment", "semantics", "step", "leg", "metric", "unit")
    of_point = ("run", "at", "status", "framework", "suite_commit", "value", "percent")
    rows = [
        [
            *(getattr(line, name) for name in of_line),
            point.run,
            iso(point.at),
            point.status.value if point.status else "",
            *(getattr(point, name) for name in of_point[3:]),
        ]
        for line in overview.lines
        for point in line.points
    ]
    return as_csv([*of_line, *of_point], rows)
