"""Loads the overview of nodes and of the runs that wait for them."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tipcflow.execute.drain.drains import all_drains
from tipcflow.report.overview.flaky import nodes_of
from tipcflow.report.overview.node_history import NodeKey
from tipcflow.report.overview.nodes import (
    Bar,
    DrainedNode,
    HeldSlot,
    NodeRow,
    NodesOverview,
    SlurmWaiting,
    Waiting,
    busy_share,
    expected_starts,
    lanes_of,
)
from tipcflow.report.overview.today import DAY_S, GREEN

if TYPE_CHECKING:
    from tipcflow.store import Store
    from tipcflow.store.queries.node_use import Use
    from tipcflow.store.queries.states import Active

# Runs without a status whose expected ends are estimated.
MOST_ACTIVE = 200
HOUR_S = 3600.0
LONGEST_H = 31 * 24


def load_nodes(
    store: "Store",
    *,
    cluster: str = "",
    hours: float = 24,
    days: float = 30,
    until: float | None = None,
    now: float | None = None,
) -> NodesOverview:
    """Return the overview.

    Args:
        cluster: only runs on this cluster; '' for all.
        hours: length of the period of the bars.
        days: period of the rates: runs of the last N days.
        until: end of the period of the bars, seconds since the epoch; None for now.
        now: seconds since the epoch; None for the database's clock.
    """
    now = store.now() if now is None else now
    until = now if until is None else min(until, now)
    since = until - hours * HOUR_S
    active, _ = store.states.active(MOST_ACTIVE)
    uses = store.node_use.runs(since, until, cluster=cluster)
    return NodesOverview(
        at=now,
        since=since,
        until=until,
        days=days,
        nodes=_nodes(store, uses, since, until, rated=now - days * DAY_S, cluster=cluster),
        slots=_slots(store, active, now),
        queue=tuple(waiting for waiting in load_queue(store, active, now) if cluster in ("", waiting.cluster)),
        slurm=tuple(waiting for waiting in load_slurm_queue(store) if cluster in ("", waiting.cluster)),
        drained=_drained(store, cluster),
    )


def _drained(store: "Store", cluster: str) -> tuple[DrainedNode, ...]:
    drains = [each.drain for each in all_drains(store) if each.drain.ended_at is None]
    names = ("cluster", "node", "at", "who", "why")
    return tuple(
        DrainedNode(**{name: getattr(drain, name) for name in names})
        for drain in drains
        if cluster in ("", drain.cluster)
    )


def _nodes(
    store: "Store", uses: Sequence["Use"], since: float, until: float, *, rated: float, cluster: str
) -> tuple[NodeRow, ...]:
    bars: dict[NodeKey, list[Bar]] = defaultdict(list)
    for use in uses:
        bar = Bar(use.run, use.chain, use.mode, use.status, use.started_at, use.ended_at)
        for node in use.nodes:
            bars[use.cluster, node].append(bar)
    counts = [count for count in store.repeats.by_node(rated) if cluster in ("", count[0])]
    rates = {(each.cluster, each.node): each.infrastructure for each in nodes_of(counts, (), GREEN)}
    lost = store.node_use.lost(rated)
    rows = [
        NodeRow(
            cluster=node[0],
            node=node[1],
            busy=busy_share(own, since, until),
            infrastructure=rates.get(node),
            lost=lost.get(node, 0),
            lanes=lanes_of(own, until),
        )
        for node, own in (dict.fromkeys(rates, ()) | bars).items()
    ]
    return tuple(sorted(rows, key=_badness))


def _badness(row: NodeRow) -> tuple[float, float, str, str]:
    rate = row.infrastructure
    return (-rate.low, -rate.rate, row.node, row.cluster) if rate else (0.0, 0.0, row.node, row.cluster)


def _slots(store: "Store", active: Sequence["Active"], now: float) -> tuple[HeldSlot, ...]:
    known = {each.run.id: each for each in active}
    return tuple(
        HeldSlot(
            node=lease.node,
            slot=lease.slot,
            run=lease.run,
            chain=known[lease.run].run.chain if lease.run in known else "",
            acquired_at=lease.acquired_at,
            expired=not lease.live(now),
            expected_end_at=_end(known.get(lease.run)),
        )
        for lease in store.leases.all()
    )


def _end(active: "Active | None") -> float | None:
    if active is None or active.usual_s is None or active.started_at is None:
        return None
    return active.started_at + active.usual_s


def load_queue(store: "Store", active: Sequence["Active"], now: float) -> list[Waiting]:
    """Return the runs that wait for slots, in queue order.

    Args:
        active: runs without a status; others have no expected end.
        now: seconds since the epoch, by the database's clock.
    """
    places = store.queue.places(now)
    if not places:
        return []
    known: Mapping[str, Active] = {each.run.id: each for each in active}
    ends = {(lease.node, lease.slot): _end(known.get(lease.run)) for lease in store.leases.all()}
    usual = {run: each.usual_s for run, each in known.items() if each.usual_s is not None}
    starts = expected_starts([(place.request.run, place.request.slots) for place in places], ends, usual, now)
    runs = store.runs.known([place.request.run for place in places])
    waiting = []
    for place in places:
        request = place.request
        run = runs.get(request.run)
        waiting.append(
            Waiting(
                position=place.position,
                run=request.run,
                chain=run.chain if run else "",
                mode=run.mode if run else "",
                cluster=run.cluster if run else "",
                priority=request.priority,
                created_at=request.created_at,
                slots=dict(Counter(node for node, _ in request.slots)),
                held_by=tuple(dict.fromkeys(lease.run for lease in place.held)),
                ahead=tuple(other.run for other in place.ahead),
                expected_start_at=starts[request.run],
            )
        )
    return waiting


def load_slurm_queue(store: "Store") -> list[SlurmWaiting]:
    """Return the runs that wait for an allocation by Slurm: by cluster and partition, in Slurm's order."""
    waits = store.queue.in_slurm()
    runs = store.runs.known(sorted(waits)) if waits else {}
    rows = []
    for name, run in runs.items():
        own = {
            "run": name,
            "chain": run.chain,
            "mode": run.mode,
            "cluster": run.cluster,
            "since": waits[name].since,
        }
        if (place := waits[name].place) is not None:
            own |= place.model_dump(exclude={"starts"}) | {"expected_start_at": place.starts}
        rows.append(SlurmWaiting.model_validate(own))
    return sorted(rows, key=_place_in_slurm)


def _place_in_slurm(row: SlurmWaiting) -> tuple[str, bool, str, int, float, str]:
    """Runs without a known position are the last of their cluster."""
    return row.cluster, not row.position, row.partition, row.position, row.since, row.run
