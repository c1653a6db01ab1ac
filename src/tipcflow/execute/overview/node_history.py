"""Loads the speed of nodes over time: found in the runs of a period, or as maintenance last found it.

To find it takes seconds for the runs of a quarter on many nodes, so pages read what the hourly DAG `maintenance`
stored.
"""

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING

from pydantic import ValidationError

from tipcflow.domain.numbers.metrics import metric
from tipcflow.execute.drain.drains import all_drains
from tipcflow.report.overview.node_history import CHAINS, NodeHistory, NodeKey, Sample, make_node_history
from tipcflow.report.overview.today import DAY_S

if TYPE_CHECKING:
    from tipcflow.store import Store

HISTORY_DAYS = 90.0
# An older report means that maintenance does not run.
FRESH_S = 2 * 3600.0


def recent_node_history(
    store: "Store", *, cluster: str = "", days: float = HISTORY_DAYS, now: float | None = None
) -> NodeHistory:
    """Return which nodes are slower than before, as maintenance found it within two hours; otherwise find it now.

    Args and times are those of `load_node_history`; `NodeHistory.at` is the time of the report.
    """
    now = store.now() if now is None else now
    body = store.node_histories.get(cluster, days, since=now - FRESH_S)
    try:
        if body is not None:
            return NodeHistory.model_validate(body)
    except ValidationError:
        pass  # stored by another version
    return load_node_history(store, cluster=cluster, days=days, now=now)


def refresh_node_histories(store: "Store", *, now: float | None = None) -> list[NodeHistory]:
    """Find and store the history of all nodes and of each cluster with recent runs. Returns it in this order.

    The drained nodes are stored with that of all nodes, for the metrics: finding them reads all documents.
    """
    now = store.now() if now is None else now
    drains = [each.drain for each in all_drains(store) if each.drain.ended_at is None]
    drained = [{"cluster": drain.cluster, "node": drain.node} for drain in drains]
    histories = []
    for cluster in ("", *store.node_use.clusters()):
        history = load_node_history(store, cluster=cluster, now=now)
        body = history.model_dump(mode="json") | ({} if cluster else {"drained": drained})
        store.node_histories.put(cluster, history.days, history.at, body)
        histories.append(history)
    return histories


def load_node_history(
    store: "Store", *, cluster: str = "", days: float = HISTORY_DAYS, now: float | None = None
) -> NodeHistory:
    """Return which nodes are slower than before.

    Args:
        cluster: only runs on this cluster; '' for all.
        days: only runs of the last N days.
        now: seconds since the epoch; None for the database's clock.
    """
    now = store.now() if now is None else now
    since = now - days * DAY_S
    samples: dict[NodeKey, dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for probe in store.node_use.probes(since, cluster=cluster):
        name = probe.metric.removeprefix("probe.")
        samples[probe.cluster, probe.node][name].append(Sample(probe.run, probe.at, probe.value))
    for place, nodes, sample in _residuals(store, since, cluster):
        for node in nodes:
            samples[place, node][CHAINS].append(sample)
    return make_node_history(samples, at=now, days=days)


def _residuals(store: "Store", since: float, cluster: str) -> list[tuple[str, tuple[str, ...], Sample]]:
    """Return (cluster, nodes, residual) of each run: the median slowdown of its speeds, oldest first."""
    slowdowns: dict[tuple[float, str, str, tuple[str, ...]], list[float]] = defaultdict(list)
    for ratio in store.node_use.ratios(since, cluster=cluster):
        known = metric(ratio.metric)
        if known.family == "speed" and known.better != "none":
            value = ratio.ratio if known.better == "lower" else 1 / ratio.ratio
            slowdowns[ratio.at, ratio.run, ratio.cluster, ratio.nodes].append(value)
    return [
        (place, nodes, Sample(run, at, median(values))) for (at, run, place, nodes), values in slowdowns.items()
    ]
