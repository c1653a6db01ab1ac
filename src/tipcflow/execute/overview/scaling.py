"""Loads scaling chains."""

from typing import TYPE_CHECKING

from tipcflow.domain.run.scaling import ScalingDocument
from tipcflow.report.overview.scaling import ScalingList, scaling_list
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
