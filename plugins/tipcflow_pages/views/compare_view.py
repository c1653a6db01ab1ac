"""View model of the page that compares runs."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from urllib.parse import urlencode

from markupsafe import Markup

from tipcflow.domain.numbers.units import percent
from tipcflow.report.comparison.metrics import MetricRow
from tipcflow.report.comparison.model import Comparison
from tipcflow.report.comparison.parts import CheckRow
from tipcflow.report.comparison.tables import LETTERS, amount, noise, noise_of_history, score, verdict
from tipcflow.report.curves import curve
from tipcflow.report.text.names import short_step, shorten
from tipcflow_pages.charts.losses import MOST, loss_chart

_LISTED = 400


class CompareView:
    """Values for the template.

    Args:
        losses: of each run, step -> training losses of one rank.
        every: show rows that are the same in all runs, too.
    """

    def __init__(
        self, compared: Comparison, losses: Sequence[Mapping[str, Sequence[float]]], *, every: bool = False
    ) -> None:
        self.compared, self.every, self._losses = compared, every, losses
        self.letters = LETTERS[: len(compared.runs)]
        self.ids = [own.run.id for own in compared.runs]
        self.runs = list(zip(self.letters, compared.runs, strict=True))
        self.first = compared.runs[0].run
        self.amount, self.percent, self.score, self.verdict = amount, percent, score, verdict

    def query(self, **more: object) -> str:
        """Return the state of the page as a query."""
        return urlencode([*(("run", name) for name in self.ids), *more.items()])

    @cached_property
    def reversed(self) -> str:
        """The query of the same comparison with the last run as the base."""
        return urlencode([("run", name) for name in reversed(self.ids)])

    @cached_property
    def differing(self) -> list[tuple[str, tuple[str, ...]]]:
        """Facts that are not the same in all runs."""
        return [(row.name, row.values) for row in self.compared.facts if row.differs]

    @cached_property
    def equal(self) -> list[tuple[str, str]]:
        """Facts that are the same in all runs."""
        return [(row.name, row.values[0]) for row in self.compared.facts if not row.differs]

    @cached_property
    def metrics(self) -> list[MetricRow]:
        """Metrics that changed, or whose limit is unknown; all with `every`."""
        rows = self.compared.metrics
        return [row for row in rows if self.every or row.is_notable][:_LISTED]

    @cached_property
    def checks(self) -> list[CheckRow]:
        """Checks whose status differs; all with `every`."""
        return [row for row in self.compared.checks if self.every or row.differs][:_LISTED]

    @property
    def slowest_s(self) -> float:
        """Seconds of the longest step of all runs; 0 if none ran."""
        return max((seconds or 0.0 for row in self.compared.steps for seconds in row.seconds), default=0.0)

    @property
    def slowest_ms(self) -> float:
        """Largest latency of all legs; 0 if none was measured."""
        return max((latency or 0.0 for row in self.compared.legs for latency in row.latencies_ms), default=0.0)

    @property
    def noise_of_history(self) -> str:
        """How many accepted runs the noise is estimated from, or how many are missing for it."""
        return noise_of_history(self.compared)

    def noise(self, row: MetricRow) -> str:
        """The noise of a metric, or why it is unknown."""
        return noise(row, self.compared.needed)

    def short(self, step: str) -> str:
        """Return a step's name, without the variant if there is only one."""
        return short_step(self.compared.runs[0].data.plan, step)

    def shorten(self, text: str) -> str:
        """Replace step ids in a text by their short names."""
        return shorten(self.compared.runs[0].data.plan, text)

    @cached_property
    def charts(self) -> list[tuple[str, Markup, str]]:
        """(step, chart, runs without losses) of each training step."""
        charts = []
        for step in dict.fromkeys(step for losses in self._losses for step in losses):
            curves = [
                (number, curve(letter, losses[step], most=MOST))
                for number, (letter, losses) in enumerate(zip(self.letters, self._losses, strict=True))
                if step in losses
            ]
            missing = [letter for letter, own in zip(self.letters, self._losses, strict=True) if step not in own]
            name = self.short(step)
            charts.append((name, loss_chart(curves, label=f"training losses of {name}"), ", ".join(missing)))
        return charts
