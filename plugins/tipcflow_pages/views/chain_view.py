"""View model of a chain's page."""

from functools import cached_property
from urllib.parse import quote, urlencode

from markupsafe import Markup

from tipcflow.domain import Run
from tipcflow.domain.numbers.metric_groups import Group
from tipcflow.domain.numbers.units import percent
from tipcflow.domain.run.names import StepId
from tipcflow.report.chain.history import ChainHistory, MetricHistory
from tipcflow.report.chain.series import LineKey
from tipcflow.report.chain.tables import baseline
from tipcflow.report.comparison.tables import amount
from tipcflow_pages.charts.panel import Timeline, panel

# Panels of a page, and rows of its table of runs: a page has at most 300 KiB and 100 tab stops.
_PANELS, _RUNS, _GROUPS = 48, 20, 12


class ChainView:
    """Values for the template.

    Args:
        every: show all evaluated metrics, not only the main ones.
        root: mount point of the pages.
    """

    def __init__(self, history: ChainHistory, *, every: bool, last: int, root: str) -> None:
        self.history, self.every, self.last, self._root = history, every, last, root
        self._timeline = Timeline.of(history.runs, root)
        self.amount, self.percent = amount, percent

    @property
    def newest(self) -> Run:
        """The newest run."""
        return self.history.runs[-1]

    @property
    def path(self) -> str:
        """The path of the page, below the mount point."""
        return f"chains/{quote(self.history.chain, errors='replace')}"

    def query(self, **changes: object) -> str:
        """Return the state of the page, with changes, as a query."""
        history = self.history
        state: dict[str, object] = {"mode": history.mode, "environment": history.environment}
        state |= {"semantics": history.compat, "last": self.last, "every": "true" if self.every else ""}
        return urlencode({key: value for key, value in (state | changes).items() if value or key == "environment"})

    def series(self, row: MetricHistory) -> str:
        """Return the query of the page Series with this metric."""
        history = self.history
        key = LineKey(
            history.chain, history.mode, history.environment, history.compat, row.step, row.leg, row.metric
        )
        return urlencode({"s": str(key)})

    @cached_property
    def groups(self) -> list[tuple[str, str, bool]]:
        """(name, query, whether it is shown) of the chain's modes and environment classes."""
        shown = (self.history.mode, self.history.environment, self.history.compat)
        several = len({group[2] for group in self.history.groups}) > 1
        return [
            (
                f"{mode} on {environment or 'unknown environment'}{f', {compat}' if several else ''} ({runs})",
                self.query(mode=mode, environment=environment, semantics=compat),
                (mode, environment, compat) == shown,
            )
            for mode, environment, compat, runs in self.history.groups[:_GROUPS]
        ]

    @cached_property
    def panels(self) -> list[tuple[Group, list[tuple[MetricHistory, Markup]]]]:
        """The charts by group of metrics, the worst first."""
        rows = [row for row in self.history.metrics if self.every or row.is_main][:_PANELS]
        return [
            (group, [(row, panel(row, self._timeline)) for row in rows if row.group is group])
            for group in dict.fromkeys(row.group for row in rows)
        ]

    @property
    def hidden(self) -> int:
        """Number of metrics that are not shown."""
        return len(self.history.metrics) - sum(len(rows) for _, rows in self.panels)

    @property
    def is_full(self) -> bool:
        """Whether metrics are hidden because the page is full."""
        return self.every or sum(len(rows) for _, rows in self.panels) >= _PANELS

    def baseline(self, row: MetricHistory) -> str:
        """The baseline and the smallest detectable change."""
        return baseline(row, self.history.needed)

    def step(self, row: MetricHistory) -> str:
        """The last part of a step, or the whole ID where several variants have one."""
        last = StepId.parse(row.step).name
        same = {other.step for other in self.history.metrics if StepId.parse(other.step).name == last}
        return row.step if len(same) > 1 else last

    @cached_property
    def runs(self) -> list[tuple[Run, list[str]]]:
        """The newest runs, newest first, each with what is new or was decided."""
        first = max(0, len(self.history.runs) - _RUNS)
        return [(run, self._news(at, run)) for at, run in enumerate(self.history.runs) if at >= first][::-1]

    def _news(self, at: int, run: Run) -> list[str]:
        news = ["new framework"] if at in self._timeline.frameworks else []
        news += ["new suite commit"] if at in self._timeline.commits else []
        decisions = [item for row in self.history.metrics for item in row.decisions if item.run == run.id]
        news += [f"{item.kind} by {item.who}" for item in decisions]
        return list(dict.fromkeys(news))
