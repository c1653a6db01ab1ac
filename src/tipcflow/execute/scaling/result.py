"""The result of a scaling chain, from the runs of its topologies."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from tipcflow.domain import ConfigError, Run, Status, exit_code
from tipcflow.domain.run.scaling import ScaledTopology, ScalingDocument
from tipcflow.execute.scaling.series import Series
from tipcflow.execute.scaling.speeds import run_speeds
from tipcflow.parse.scaling.plausibility import doubts, spread_of
from tipcflow.parse.scaling.scaling import Scaled, Speed, scaled
from tipcflow.parse.scaling.speeds import Window
from tipcflow.store import Store

# Statuses of runs whose trainings worked: only their speeds count.
_WORKS = frozenset({Status.PASS, Status.IMPROVEMENT, Status.REGRESSION, Status.UNCONFIRMED})


# Earlier series from which the usual spread of repeats is computed.
_LEAST_SERIES, _MOST_SERIES = 3, 20


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
    runs = [entry.run for entry in entries if entry.run]
    known = store.runs.known(runs)
    last = next((run for run in reversed(runs) if run in known), "")
    usual = usual_spreads(store, known[last], series) if last else {}
    notes = list(dict.fromkeys([*notes, *doubts(rows, usual)]))
    document = ScalingDocument(
        precision=series.precision,
        repeats=series.request.repeats,
        rule=series.rule,
        skip=series.skip,
        take=series.take,
        topologies=tuple(_with_results(entry, rows) for entry in with_speeds),
        notes=tuple(notes),
    )
    if last:
        store.documents.put(last, document)
    return Measured(rows, document, notes, last)


def usual_spreads(store: Store, run: Run, series: Series) -> dict[tuple[str, int], float]:
    """Return the mean spread of each topology and batch size in the last series before a run, if there were at
    least `_LEAST_SERIES` with two or more repeats: of the same chain, cluster, precision and rule."""
    documents = store.documents.of_type(ScalingDocument)
    before = [
        other
        for other in store.runs.known(documents).values()
        if (other.chain, other.cluster) == (run.chain, run.cluster) and other.created_at < run.created_at
    ]
    spreads: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    for other in sorted(before, key=lambda other: other.created_at)[-_MOST_SERIES:]:
        document = documents[other.id]
        if (document.precision, document.rule) == (series.precision, series.rule):
            for entry in document.topologies:
                if entry.spread is not None and entry.repeats > 1:
                    spreads[entry.topology, entry.batch_size_per_device].append(entry.spread)
    return {key: fmean(values) for key, values in spreads.items() if len(values) >= _LEAST_SERIES}


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
