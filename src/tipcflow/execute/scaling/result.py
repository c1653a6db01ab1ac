"""The result of a scaling chain, from the runs of its topologies."""

from collections.abc import Sequence
from dataclasses import dataclass

from tipcflow.domain import ConfigError, Status, exit_code
from tipcflow.domain.run.scaling import ScaledTopology, ScalingDocument
from tipcflow.execute.scaling.series import Series
from tipcflow.execute.scaling.speeds import run_speeds
from tipcflow.parse.scaling.plausibility import doubts, spread_of
from tipcflow.parse.scaling.scaling import Scaled, Speed, scaled
from tipcflow.parse.scaling.speeds import Window
from tipcflow.store import Store

# Statuses of runs whose trainings worked: only their speeds count.
_WORKS = frozenset({Status.PASS, Status.IMPROVEMENT, Status.REGRESSION, Status.UNCONFIRMED})


@dataclass(frozen=True)
class Measured:
    """The result: speeds per topology, what is stored, and notes for the user.

    Attributes:
        run: the last run, with which the series is stored; '' if no run was started.
    """

    rows: list[Scaled]
    document: ScalingDocument
    notes: list[str]
    run: str = ""


def measured(store: Store, series: Series, entries: Sequence[ScaledTopology]) -> Measured:
    """Return the result of the topologies' runs and store it with the last run.

    Args:
        entries: each topology with its run and the run's status, in the order of the runs.
    """
    speeds: list[Speed] = []
    notes: list[str] = []
    with_speeds = [
        _with_speeds(store, entry, series, speeds, notes) if entry.status in _WORKS else entry for entry in entries
    ]
    rows = _rows(speeds, with_speeds, notes)
    notes = list(dict.fromkeys([*notes, *doubts(rows)]))
    document = ScalingDocument(
        precision=series.precision,
        repeats=series.request.repeats,
        rule=series.rule,
        skip=series.skip,
        take=series.take,
        topologies=tuple(_with_results(entry, rows) for entry in with_speeds),
        notes=tuple(notes),
    )
    known = store.runs.known([entry.run for entry in entries if entry.run])
    if last := next((entry.run for entry in reversed(entries) if entry.run in known), ""):
        store.documents.put(last, document)
    return Measured(rows, document, notes, last)


def exit_code_of(result: Measured) -> int:
    """Return the exit code of the worst run; a run without a speed is `failed`, too."""
    worst = worst_status(result)
    return exit_code(worst) if worst else 0


def worst_status(result: Measured) -> Status | None:
    """Return the worst status; `failed` for a passed run without a speed, None if no topology was trained."""
    ran = [entry for entry in result.document.topologies if entry.status is not Status.NOT_RUN]
    with_speed = {row.topology for row in result.rows}
    statuses = [entry.status for entry in ran]
    statuses += [
        Status.FAILED for entry in ran if entry.topology not in with_speed and not exit_code(entry.status)
    ]
    return max(statuses, key=lambda status: status.severity, default=None)


def _with_speeds(
    store: Store, entry: ScaledTopology, series: Series, speeds: list[Speed], notes: list[str]
) -> ScaledTopology:
    """Add the speeds of a run; a passed run without a speed gets the reason."""
    window = Window(series.skip, series.take)
    try:
        of_run = run_speeds(store, entry.run, rule=series.rule, batch=entry.batch_size_per_device, window=window)
    except ConfigError as error:
        return entry if entry.reason else entry.model_copy(update={"reason": error.message})
    speeds += of_run.speeds
    notes += of_run.notes
    return entry


def _with_results(entry: ScaledTopology, rows: Sequence[Scaled]) -> ScaledTopology:
    """Return the topology with its figures, for pages and comparisons; of several models, those of the first."""
    row = next((row for row in rows if row.topology == entry.topology), None)
    if row is None:
        return entry
    figures = row.model_dump(
        include={"devices", "repeats", "average_speed", "median_speed", "speedup", "efficiency"}
    )
    return entry.model_copy(update={**figures, "spread": round(spread_of(row), 4)})


def _rows(speeds: Sequence[Speed], entries: Sequence[ScaledTopology], notes: list[str]) -> list[Scaled]:
    """Return the table, with the batch size of each topology."""
    batches = {entry.topology: entry.batch_size_per_device for entry in entries}
    rows = scaled(speeds, 0, from_smallest=True)
    smallest = next((row for row in rows if row.speedup == 1), None)
    if smallest is not None and smallest.devices > 1:
        notes.append(f"speed-up and efficiency are relative to {smallest.topology}")
    return [row.model_copy(update={"batch_size_per_device": batches[row.topology]}) for row in rows]
