"""Measures the selection for pull requests by the new regressions of a full run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tipcflow.config.repository import load_repositories
from tipcflow.config.settings import Settings
from tipcflow.domain import Run, Status, TipcflowError
from tipcflow_operators.weekly.report import Selector
from tipcflow_operators.weekly.table import Row

if TYPE_CHECKING:
    from tipcflow.store import Store

MISSED = "missed: a pull request would not have run it"
# How many earlier runs to search for the last good one.
_LOOK_BACK = 20
_GOOD = (Status.PASS, Status.IMPROVEMENT)


def measure_selector(store: "Store", rows: Sequence[Row], known: Settings) -> Selector:
    """Store for each new regression whether the selection would have run its chain, and return the report.

    A suite that cannot be read is reported, and does not change the result of the weekly run.
    """
    from tipcflow.execute.changes import false_green, measure

    lines: list[tuple[str, str, str]] = []
    for row in rows:
        before = _last_good(store, row.run) if row.run else None
        if row.run is None or before is None:
            continue
        try:
            repositories = tuple(load_repositories(known.config_dir))
            measured = measure(store, row.run, before, repositories, known.config_dir, cache=known.home / "suites")
        except Exception as error:
            # The weekly report is worth more than this measurement.
            why = error.message if isinstance(error, TipcflowError) else repr(error)
            lines.append((row.chain, "", f"not measured: {why}"))
            continue
        for name, why in measured.verdicts.items() if measured else ():
            lines.append((row.chain, name, why or MISSED))
    return Selector(false_green(store).line, tuple(lines))


def _last_good(store: "Store", run: Run) -> Run | None:
    return next((old for old in store.history.earlier(run, _LOOK_BACK) if old.status in _GOOD), None)
