"""Drains a slow node of a cluster, lists drained nodes, and returns a node to service; users' drains: `manual`."""

from typing import TYPE_CHECKING, NamedTuple

from tipcflow.domain import Cluster, ConfigError
from tipcflow.domain.alert.entry import TIPCFLOW
from tipcflow.domain.numbers.units import counted
from tipcflow.domain.run.drains import DoubtfulDocument, Drain, DrainsDocument
from tipcflow.report.overview.node_history import CHAINS, NodeHistory, NodeTrend, change_text

if TYPE_CHECKING:
    from tipcflow.store import Store

AUTO = "auto"
# A slowdown counts if the node's own probe shows it, by this much, in this many runs.
LEAST_SIZE, LEAST_RUNS = 0.2, 5
# At most this share of a cluster's nodes is drained; one node always may be.
MOST_SHARE = 0.25
_DAY_S = 86_400.0
# Runs of this period determine how many nodes a cluster needs.
_NEEDED_S = 30 * _DAY_S
_RUNS = 1000


class Drained(NamedTuple):
    """A drain, the run with which it is stored, and its key in the run's document."""

    run: str
    drain: Drain
    key: str


def all_drains(store: "Store") -> list[Drained]:
    """Return all drains, ended ones too, oldest first."""
    stored = store.documents.of_type(DrainsDocument)
    every = [Drained(run, drain, key) for run, document in stored.items() for key, drain in document.root.items()]
    return sorted(every, key=lambda each: (each.drain.at, each.drain.key))


def drained_nodes(store: "Store", cluster: Cluster) -> dict[str, Drain]:
    """Return node -> its drain, of the nodes that get no runs. Those that tipcflow drained count only if the
    cluster drains by itself, those of users always."""
    every = [each.drain for each in all_drains(store) if each.drain.cluster == cluster.name]
    own = [drain for drain in every if cluster.drain == AUTO or drain.who != TIPCFLOW]
    known = {node.name for node in cluster.nodes}
    return {drain.node: drain for drain in own if drain.ended_at is None and drain.node in known}


def drain_slowest(store: "Store", cluster: Cluster, history: NodeHistory, now: float) -> tuple[Drain | None, str]:
    """Drain the slowest node of a cluster if the evidence and the rest of the cluster permit it.

    At most one node at a time: the next pass sees what the cluster does without the node.

    Args:
        history: of the cluster's nodes.
        now: seconds since the epoch.

    Returns:
        The drain, None if no node is drained; and a line with the reason, '' without a slow node.
    """
    before = {each.drain.node: each.drain for each in all_drains(store) if each.drain.cluster == cluster.name}
    names = {node.name for node in cluster.nodes}
    slow = [trend for trend in history.slow if trend.node in names and _is_news(trend, before.get(trend.node))]
    proven = [trend for trend in slow if _is_proven(trend)]
    if not proven:
        few = f"at least {LEAST_RUNS} runs and {LEAST_SIZE:.0%} of a probe are required"
        return None, f"{slow[0].node} is slower than before: {few}" if slow else ""
    trend = proven[0]
    drained = drained_nodes(store, cluster)
    if why := _why_not(store, cluster, len(drained), now):
        return None, f"{trend.node} is not drained: {why}"
    probe = next(change for change in trend.changes if change.source != CHAINS)
    drain = Drain(
        cluster=cluster.name,
        node=trend.node,
        at=now,
        who=TIPCFLOW,
        why=f"{change_text(probe)}; {counted(probe.runs, 'run')} since then",
        doubtful=trend.doubtful,
    )
    store.documents.merge(probe.since, DrainsDocument, {drain.key: drain})
    for run in store.runs.known(trend.doubtful):
        store.documents.put(run, DoubtfulDocument(why=f"node {drain.node} is slower than before: {drain.why}"))
    return drain, f"{drain.node} is drained: {drain.why}"


def end_drain(store: "Store", cluster: str, node: str, *, who: str, why: str) -> Drain:
    """Return a node to service. Its present slowdown does not drain it again.

    Args:
        cluster: '' if only one cluster has a drained node of that name.

    Raises:
        ConfigError: no such node is drained, or several clusters have one.
    """
    active = [each for each in all_drains(store) if each.drain.ended_at is None]
    named = [each for each in active if each.drain.node == node and cluster in ("", each.drain.cluster)]
    if len(named) != 1:
        raise ConfigError(
            "is drained in several clusters" if named else "is not drained",
            key="NODE",
            found=node,
            expected=f"one of {', '.join(sorted(each.drain.key for each in active))}" if active else "",
            hint="name the cluster: --cluster" if named else "",
        )
    ended = named[0].drain.model_copy(update={"ended_at": store.now(), "ended_by": who, "ended_why": why})
    store.documents.merge(named[0].run, DrainsDocument, {named[0].key: ended})
    return ended


def _is_news(trend: NodeTrend, before: Drain | None) -> bool:
    """Whether no drain covers the slowdown; a user who ended a drain has seen what began earlier."""
    if before is None:
        return True
    return before.ended_at is not None and min(each.since_at for each in trend.changes) > before.ended_at


def _is_proven(trend: NodeTrend) -> bool:
    probes = [change for change in trend.changes if change.source != CHAINS]
    return any(change.runs >= LEAST_RUNS and change.size >= LEAST_SIZE for change in probes)


def _why_not(store: "Store", cluster: Cluster, drained: int, now: float) -> str:
    """Return why the cluster cannot do without another node; '' if it can."""
    count = len(cluster.nodes)
    if drained + 1 > max(1, int(MOST_SHARE * count)):
        return (
            f"{drained} of {counted(count, 'node')} of {cluster.name} are drained, at most {MOST_SHARE:.0%} may be"
        )
    recent = (run for run in store.runs.newest(limit=_RUNS) if run.created_at >= now - _NEEDED_S)
    needed = max((len(run.nodes) for run in recent if run.cluster == cluster.name), default=1)
    left = count - drained - 1
    if left < max(1, needed):
        return f"{counted(left, 'node')} of {cluster.name} would be left, and its runs use up to {needed}"
    return ""
