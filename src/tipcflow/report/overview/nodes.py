"""Nodes: who used them when, who holds and who waits for their slots, and how often runs failed on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from tipcflow.domain import Status
from tipcflow.report.overview.flaky import Rate
from tipcflow.report.overview.node_history import NodeKey, shown_names

Slot = tuple[str, int]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True, slots=True)
class Bar:
    """A run on its nodes. `status` and `ended_at` are None while it is running.

    Not a model, because pages create thousands of them.
    """

    run: str
    chain: str
    mode: str
    status: Status | None
    started_at: float
    ended_at: float | None


class NodeRow(_Model):
    """One node.

    Attributes:
        lanes: its runs in the period; runs of one lane do not overlap.
        busy: share of the period in which at least one run used it.
        infrastructure: runs on it that ended as `infra_failure`, of its ended runs of the last `days`; None
            without an ended run.
        lost: number of steps of these runs that ended because the node was lost.
    """

    cluster: str
    node: str
    busy: float
    infrastructure: Rate | None
    lost: int
    lanes: tuple[tuple[Bar, ...], ...]

    @property
    def runs(self) -> int:
        """Number of runs in the period."""
        return sum(map(len, self.lanes))


class HeldSlot(_Model):
    """A leased slot.

    Attributes:
        node: address, as in the cluster's file.
        expired: whether the lease was not renewed in time: the slot is free after a check of the node.
        expected_end_at: of the run, by its chain's newest complete runs; None without one.
    """

    node: str
    slot: int
    run: str
    chain: str
    acquired_at: float
    expired: bool
    expected_end_at: float | None


class Waiting(_Model):
    """A run that waits for slots.

    Attributes:
        position: 1 for the next of those that want one of its slots.
        slots: node -> number of slots.
        held_by, ahead: runs that hold its slots, and waiting runs that get them earlier.
        expected_start_at: None if the duration of one of these runs is unknown.
    """

    position: int
    run: str
    chain: str
    mode: str
    cluster: str
    priority: int
    created_at: float
    slots: dict[str, int]
    held_by: tuple[str, ...]
    ahead: tuple[str, ...]
    expected_start_at: float | None


class SlurmWaiting(_Model):
    """A run that waits for an allocation by Slurm.

    Attributes:
        since: start of the wait, seconds since the epoch.
        job: ID of its job; '' before Slurm has accepted the request.
        partition, position, pending, reason: as of `SlurmPlace`.
        expected_start_at: None if Slurm has not computed it.
    """

    run: str
    chain: str
    mode: str
    cluster: str
    since: float
    job: str = ""
    partition: str = ""
    position: int = 0
    pending: int = 0
    reason: str = ""
    expected_start_at: float | None = None


class DrainedNode(_Model):
    """A node that gets no runs.

    Attributes:
        at: since when, seconds since the epoch.
        who, why: `tipcflow` or a user, and the reason.
    """

    cluster: str
    node: str
    at: float
    who: str
    why: str


class NodesOverview(_Model):
    """Everything that the page shows.

    Attributes:
        since, until: the period of bars and `busy`, seconds since the epoch.
        days: period of the rates and lost nodes.
        nodes: the worst first: highest lower bound of the rate of infrastructure failures.
        queue, slurm: runs that wait for slots, and for an allocation by Slurm.
    """

    schema_version: int = 1
    at: float
    since: float
    until: float
    days: float
    nodes: tuple[NodeRow, ...]
    slots: tuple[HeldSlot, ...]
    queue: tuple[Waiting, ...]
    slurm: tuple[SlurmWaiting, ...] = ()
    drained: tuple[DrainedNode, ...] = ()

    @property
    def names(self) -> dict[NodeKey, str]:
        """(cluster, node) -> its name, with its cluster if nodes of several clusters have that name."""
        return shown_names((row.cluster, row.node) for row in self.nodes)


def lanes_of(bars: Sequence[Bar], now: float) -> tuple[tuple[Bar, ...], ...]:
    """Return the bars in as few lanes as possible: each in the first lane that is free when it starts.

    Args:
        bars: in the order in which they started.
        now: end of the running ones.
    """
    lanes: list[list[Bar]] = []
    ends: list[float] = []
    for bar in bars:
        begin, end = bar.started_at, now if bar.ended_at is None else bar.ended_at
        for place, free in enumerate(ends):
            if free <= begin:
                lanes[place].append(bar)
                ends[place] = end
                break
        else:
            lanes.append([bar])
            ends.append(end)
    return tuple(map(tuple, lanes))


def busy_share(bars: Sequence[Bar], since: float, until: float) -> float:
    """Return the share of the period in which at least one bar is active.

    Args:
        bars: in the order in which they started.
    """
    busy, reached = 0.0, since
    for bar in bars:
        begin = max(bar.started_at, reached)
        end = until if bar.ended_at is None else min(bar.ended_at, until)
        if end > begin:
            busy += end - begin
            reached = end
    return busy / (until - since)


def expected_starts(
    queue: Sequence[tuple[str, Sequence[Slot]]],
    ends: Mapping[Slot, float | None],
    usual_s: Mapping[str, float],
    now: float,
) -> dict[str, float | None]:
    """Return run -> expected start of the waiting runs; None if it depends on a run whose duration is unknown.

    A run starts when all its slots are free and no run ahead of it wants one of them, as the lease queue decides.

    Args:
        queue: (run, slots it wants), in queue order.
        ends: held slot -> expected end of its run; None if it is unknown. An overdue run is expected to end now.
        usual_s: run -> usual duration, seconds.
    """
    free = dict(ends)
    starts: dict[str, float | None] = {}
    for run, slots in queue:
        known = [free.get(slot, now) for slot in slots]
        start = None if any(at is None for at in known) else max([now, *(at for at in known if at is not None)])
        usual = usual_s.get(run)
        for slot in slots:
            free[slot] = None if start is None or usual is None else start + usual
        starts[run] = start
    return starts
