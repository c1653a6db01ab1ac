"""Cells of a comparison, the same on the terminal and on the page, and its metrics as CSV."""

import csv
import io
from collections.abc import Sequence

from tipcflow.check.select import format_amount
from tipcflow.domain.numbers.units import counted, percentage
from tipcflow.report.comparison.metrics import UNKNOWN, MetricRow
from tipcflow.report.comparison.model import Comparison

# Runs are called by letters: their IDs are too long for the heads of columns.
LETTERS = "ABC"


def amount(value: float | None, unit: str) -> str:
    """A metric value with its unit; '' for None."""
    return "" if value is None else format_amount(value, unit)


def score(row: MetricRow) -> str:
    """The change in relation to the noise: `12.4 σ`; `unknown` where it is evaluated without known noise."""
    if row.score is not None:
        return f"{row.score:.1f} σ"
    return "unknown" if any(row.verdicts) else ""


def noise(row: MetricRow, needed: int) -> str:
    """The noise of one run, or how many accepted runs are missing to know it.

    Args:
        needed: number of accepted runs from which on the noise is known.
    """
    if row.noise is not None:
        return f"{100 * row.noise:.2g} %"
    return f"{row.runs} of {needed} runs" if row.runs < needed else "unknown"


def noise_of_history(compared: Comparison) -> str:
    """How many accepted runs the noise is estimated from, or how many are missing for it."""
    runs = counted(compared.history, "accepted run")
    if compared.history < compared.needed:
        return f"noise unknown: {runs}, {compared.needed} needed"
    return f"noise of {runs}"


def verdict(row: MetricRow) -> str:
    """The verdicts on the runs after the first, without repetition; the limit where it decided."""
    verdicts = [word for word in dict.fromkeys(row.verdicts) if word]
    shown = ", ".join(verdicts)
    return (
        f"{shown} ({percentage(row.limit)})"
        if row.limit is not None and verdicts not in ([], [UNKNOWN])
        else shown
    )


def metrics_csv(compared: Comparison) -> str:
    """All metrics as CSV: one row per metric, values and relative changes per run."""
    ids = [run.run.id for run in compared.runs]
    head = ["step", "leg", "metric", "unit", "better", *ids, *(f"change {name}" for name in ids[1:])]
    head += [*(f"verdict {name}" for name in ids[1:]), "noise", "limit", "score", "runs"]
    rows = [
        [
            *(row.step, row.leg, row.metric, row.unit, row.better),
            *map(_exact, row.values),
            *map(_exact, row.changes),
            *row.verdicts,
            *map(_exact, (row.noise, row.limit, row.score)),
            row.runs,
        ]
        for row in compared.metrics
    ]
    return as_csv(head, rows)


def as_csv(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """Lines of CSV. Text that a spreadsheet would evaluate begins with an apostrophe."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(_harmless, head))
    writer.writerows([_harmless(cell) for cell in row] for row in rows)
    return file.getvalue()


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in "=+@\t\r" and cell else cell


def _exact(value: float | None) -> float | str:
    return "" if value is None else value
