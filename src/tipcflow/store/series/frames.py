"""Measurements as pandas DataFrames, for analysis; pandas is imported with the first DataFrame."""

from typing import TYPE_CHECKING, Any

from tipcflow.domain import Measurement, MetricKey, Phase
from tipcflow.store.run.steps import Steps
from tipcflow.store.series.measurements import Measurements
from tipcflow.store.series.summaries import Summaries, SummaryQuery

if TYPE_CHECKING:
    from pandas import DataFrame

_HISTORY = {
    "run": "id",
    "at": "created_at",
    **{name: name for name in ("status", "mode", "environment", "framework", "suite_commit")},
    **{name: name for name in ("step", "leg", "phase", "unit", "processes", "n")},
    **{name: name for name in ("mean", "median", "p10", "p90", "lowest", "highest", "rolled_up")},
}
_LEGS = ("step", "leg", "status", "reason", "node", "exit_code", "duration_s")
_PROCESS = {
    name: kept
    for name, kept in {**_HISTORY, "node": "node", "rank": "rank"}.items()
    if name not in ("processes", "rolled_up")
}


class Frames:
    """Read-only queries that return DataFrames."""

    def __init__(self, steps: Steps, measurements: Measurements, summaries: Summaries) -> None:
        self._steps, self._measurements, self._summaries = steps, measurements, summaries

    def history(
        self,
        chain: str,
        step: str,
        metric: str,
        environment: str = "",
        *,
        leg: str | None = None,
        phase: Phase | str = "",
        mode: str = "",
        since: float | None = None,
        each: bool = False,
    ) -> "DataFrame":
        """Return a metric in each run of a chain, oldest run first.

        Args:
            step: a step's id, or its last part (`train`).
            environment: an environment class, or a word of one (`v100`); '' for all.
            since: seconds since the epoch; older runs are excluded.
            each: one row per process (node and rank) instead of one row for all processes.

        Returns:
            per run, step, leg and phase: run, at (UTC), status, mode, environment, framework, suite_commit,
                step, leg, phase, unit, processes, n (samples), mean, median, p10, p90, lowest, highest (of
                the finite samples), rolled_up (percentiles are then those of the processes' medians). Covers
                the last attempt of each step.
        """
        query = SummaryQuery(chain, step, metric, environment, leg, str(phase), mode, since)
        names = _PROCESS if each else _HISTORY
        rows = [
            {name: row[column] for name, column in names.items()}
            for row in self._summaries.history_rows(query, each=each)
        ]
        return _frame(rows, list(names), time="at")

    def samples(self, run_id: str) -> "DataFrame":
        """Return all measurements of a run, including all attempts: one row each, with the fields of
        `Measurement`.

        A row with `stands_for` above 1 is the median of samples that were rolled up (`Measurements.of`).
        """
        rows = [dict(item) | {"phase": item.phase.value} for item in self._measurements.of(run_id)]
        return _frame(rows, list(Measurement.model_fields))

    def legs(self, run_id: str) -> "DataFrame":
        """Return the inference legs of a run, in the plan's order: step, leg, status, reason, node, exit_code,
        duration_s (NaN if the leg never started), and the median of every metric that any leg of the run
        has."""
        medians = self._summaries.leg_medians(run_id)
        metrics = sorted({key.metric for key in medians})
        rows = [
            {name: row[name] for name in _LEGS}
            | {metric: medians.get(MetricKey(row["step"], row["leg"], metric)) for metric in metrics}
            for row in self._steps.last_legs(run_id).values()
        ]
        return _frame(rows, [*_LEGS, *metrics])


def _frame(rows: list[dict[str, Any]], names: list[str], *, time: str = "") -> "DataFrame":
    import pandas as pd

    frame = pd.DataFrame(rows, columns=names)
    if time:
        frame[time] = pd.to_datetime(frame[time], unit="s", utc=True)
    return frame
