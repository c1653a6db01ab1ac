"""Runs the topologies of a scaling chain one after the other, with the live display of `tipcflow run`."""

from pathlib import Path

import typer

from tipcflow.domain import Status
from tipcflow.domain.run.scaling import ScaledTopology
from tipcflow.execute.scaling.result import Measured, measured
from tipcflow.execute.scaling.series import Case, Series, checked_cases
from tipcflow.store import Store


def run_series(series: Series) -> Measured:
    """Run all topologies of a series and store the result with the last run.

    Raises:
        ConfigError: an input is invalid; nothing was started.
    """
    from tipcflow.cli.run import check_names
    from tipcflow.config.settings import settings
    from tipcflow.execute.run import status_spool as spool

    check_names(series.request)
    cases = checked_cases(series)
    home = settings().home
    entries: list[ScaledTopology] = []
    with Store.open() as store:
        spool.apply(home, store)
        stopped = ""
        for case in cases:
            entry = ScaledTopology(topology=case.topology.name, batch_size_per_device=case.batch)
            if why := case.why or stopped:
                entries.append(entry.model_copy(update={"reason": why}))
                continue
            typer.echo(f"{case.topology.name}: batch size {case.batch} per device", err=True)
            entry = _run(case, entry, store, home)
            if entry.status is Status.CANCELLED:
                stopped = "stopped by a user"
            entries.append(entry)
        return measured(store, series, entries)


def _run(case: Case, entry: ScaledTopology, store: Store, home: Path) -> ScaledTopology:
    from tipcflow.cli.run import executed

    with executed(case.request, store, home) as run:
        pass
    status = run.status or Status.INFRA_FAILURE
    reason = "" if status in (Status.PASS, Status.IMPROVEMENT) else run.reason
    return entry.model_copy(update={"run": run.id, "status": status, "reason": reason})
