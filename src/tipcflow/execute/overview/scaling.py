"""Loads scaling chains."""

from typing import TYPE_CHECKING

from tipcflow.domain import ConfigError
from tipcflow.domain.run.scaling import ScalingDocument
from tipcflow.report.overview.scaling import ScalingList, ScalingSeries, scaling_list
from tipcflow.report.overview.today import DAY_S

if TYPE_CHECKING:
    from tipcflow.store import Store


def load_scaling(
    store: "Store", *, days: float = 365, chain: str = "", cluster: str = "", now: float | None = None
) -> ScalingList:
    """Return the scaling chains of the last N days with their speeds; no sample is read.

    Args:
        chain: only chains whose name contains this text; '' for all.
        cluster: only this cluster; '' for all.
        now: seconds since the epoch; None for the database's clock.
    """
    now = store.now() if now is None else now
    documents = store.documents.of_type(ScalingDocument)
    runs = {
        run_id: run
        for run_id, run in store.runs.known(documents).items()
        if chain.lower() in run.chain.lower() and cluster in ("", run.cluster)
    }
    return scaling_list(documents, runs, at=now, days=days, since=now - days * DAY_S)


def series_of_run(store: "Store", wanted: str) -> ScalingSeries | None:
    """Return the series that is stored with a run, compared with the previous one; None without one."""
    try:
        run = store.runs.find(wanted)
    except ConfigError:
        return None
    overview = load_scaling(store, days=(store.now() - run.created_at) / DAY_S + 1)
    return next((series for series in overview.series if series.run == run.id), None)
