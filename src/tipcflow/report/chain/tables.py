"""Cells of a chain's history, the same on the terminal and on the page, and all values as CSV."""

from tipcflow.domain.numbers.units import counted, iso, percentage
from tipcflow.report.chain.history import ChainHistory, MetricHistory
from tipcflow.report.comparison.tables import amount, as_csv


def baseline(row: MetricHistory, needed: int) -> str:
    """The baseline and the smallest detectable change: `0.199 s ± 1.9 %`.

    Args:
        needed: number of accepted runs from which on a change is detectable.
    """
    if row.base is None:
        return "no accepted run"
    known = amount(row.base, row.unit)
    if row.smallest is not None:
        return f"{known} ± {percentage(row.smallest)}"
    missing = needed - row.runs
    return f"{known}, noise known after {counted(missing, 'more run')}" if missing > 0 else known


def values_csv(history: ChainHistory) -> str:
    """All values as CSV: one row per run and metric, oldest run first."""
    head = ["run", "at", "status", "framework", "suite_commit", "step", "leg", "metric", "unit", "value"]
    rows = [
        [
            *(
                run.id,
                iso(run.created_at),
                run.status.value if run.status else "",
                run.framework,
                run.suite_commit,
            ),
            *(row.step, row.leg, row.metric, row.unit, row.values[at]),
        ]
        for at, run in enumerate(history.runs)
        for row in history.metrics
        if row.values[at] is not None
    ]
    return as_csv(head, rows)
