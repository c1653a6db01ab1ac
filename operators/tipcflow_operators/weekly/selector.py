"""Measures the selection for pull requests by the new regressions of a full run."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tipcflow.config.repository import load_repositories
from tipcflow.config.settings import Settings
from tipcflow.domain import InfraError, Run, Status, TipcflowError
from tipcflow.domain.numbers.units import limit
from tipcflow_operators.weekly.report import Selector
from tipcflow_operators.weekly.table import Row

if TYPE_CHECKING:
    from tipcflow.store import Store

MISSED = "missed: a pull request would not have run it"
# How many earlier runs to search for the last good one.
_LOOK_BACK = 20
# The report of the weekly run does not wait longer for the measurement of its new regressions.
DEADLINE_S = 900.0
_GOOD = (Status.PASS, Status.IMPROVEMENT)


def measure_selector(store: "Store", rows: Sequence[Row], known: Settings) -> Selector:
    """Store for each new regression whether the selection would have run its chain, and return the report.

    A suite that cannot be read is reported, and does not change the result of the weekly run.
    """
    from tipcflow.execute.changes import false_green

    regressed = [
        (row.chain, row.run, before) for row in rows if row.run and (before := _last_good(store, row.run))
    ]
    lines = list(_measured(store, regressed, known)) if regressed else []
    return Selector(false_green(store).line, tuple(lines))


def _measured(
    store: "Store", regressed: Sequence[tuple[str, Run, Run]], known: Settings
) -> Iterator[tuple[str, str, str]]:
    """Yield (chain, repository, reason or `MISSED`).

    The suites of an unreachable git server are tried once, and all regressions together within `DEADLINE_S`.
    """
    from tipcflow.execute.changes import Selections, measure

    until = time.monotonic() + DEADLINE_S
    unreachable: dict[str, str] = {}
    selections: Selections | None = None
    for chain, run, before in regressed:
        why = unreachable.get(run.suite, "")
        if not why and time.monotonic() > until:
            why = f"the measurement of the other regressions took {limit(DEADLINE_S)}"
        if why:
            yield chain, "", f"not measured: {why}"
            continue
        try:
            if selections is None:
                repositories = tuple(load_repositories(known.config_dir))
                selections = Selections(store, repositories, known.config_dir, known.home / "suites")
            measured = measure(selections, run, before)
        except Exception as error:
            # The weekly report is worth more than this measurement.
            why = error.message if isinstance(error, TipcflowError) else repr(error)
            if isinstance(error, InfraError):
                unreachable[run.suite] = why
            yield chain, "", f"not measured: {why}"
            continue
        for name, reason in measured.verdicts.items() if measured else ():
            yield chain, name, reason or MISSED


def _last_good(store: "Store", run: Run) -> Run | None:
    return next((old for old in store.history.earlier(run, _LOOK_BACK) if old.status in _GOOD), None)
