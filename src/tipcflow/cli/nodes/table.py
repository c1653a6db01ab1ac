"""Nodes, leases and the queue as text of any width, and as JSON."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tipcflow.cli.nodes.history import drain_line
from tipcflow.cli.output.output import columns
from tipcflow.domain import Cluster, Node, Run
from tipcflow.domain.numbers.units import counted, offset, size
from tipcflow.domain.run.drains import Drain
from tipcflow.execute.leases.messages import clock, format_slots, names_of, obstacles, waiting
from tipcflow.execute.node.health import NodeHealth

if TYPE_CHECKING:
    from tipcflow.store import Lease, Place

_INDENT = "    "
# Used for files and pipes.
_ANY_WIDTH = 100_000


@dataclass(frozen=True)
class Line:
    """A line for the terminal."""

    text: str
    color: str | None = None
    bold: bool = False
    dim: bool = False


@dataclass(frozen=True)
class View:
    """All data of the tables.

    Attributes:
        checked: one per node of the clusters, each address once.
        queue: waiting runs, the next one first.
        runs: the runs named in leases and queue, if the database has them.
        drains: `<cluster>/<node>` -> the drain of a node that gets no runs.
        now: seconds since the epoch.
    """

    clusters: tuple[Cluster, ...]
    checked: "Sequence[NodeHealth]"
    leases: "Sequence[Lease]" = ()
    queue: "Sequence[Place]" = ()
    runs: Mapping[str, Run] = field(default_factory=dict)
    drains: Mapping[str, Drain] = field(default_factory=dict)
    now: float = 0.0

    @property
    def names(self) -> dict[str, str]:
        """Node address -> name."""
        return names_of(*self.clusters)

    def held_on(self, node: Node) -> "list[Lease]":
        """The leases on a node, including expired ones."""
        return [lease for lease in self.leases if lease.node == node.address]

    def troubles_of(self, health: NodeHealth) -> list[str]:
        """Problems of a node, including processes without a running run; empty if it is healthy."""
        stray = [run for run in self._without_lease(health) if run in self.runs]
        return health.troubles + [
            f"run {run} has {health.processes.get(run, 0)} processes there and no lease: `tipcflow nodes reap`"
            for run in stray
        ]

    def notes_of(self, health: NodeHealth) -> list[str]:
        """Notes about a node that are not problems."""
        drained = [drain_line(drain) for drain in self.drains_of(health)]
        foreign = [run for run in sorted({*self._without_lease(health), *health.claims}) if run not in self.runs]
        return drained + [
            f"run {run} of another controller{_by(health.claims.get(run))} is running there" for run in foreign
        ]

    def drains_of(self, health: NodeHealth) -> list[Drain]:
        """The drains of a node, one per cluster that has it."""
        names = [(cluster.name, node) for cluster in self.clusters for node in cluster.nodes]
        keys = [f"{cluster}/{node.name}" for cluster, node in names if node.address == health.node.address]
        return [self.drains[key] for key in keys if key in self.drains]

    def triggers(self) -> dict[str, str]:
        """Run -> its trigger source."""
        return {name: run.trigger for name, run in self.runs.items()}

    def _without_lease(self, health: NodeHealth) -> list[str]:
        live = {lease.run for lease in self.held_on(health.node) if lease.live(self.now)}
        return [run for run in health.runs if run not in live]


def lines_of(view: View, *, width: int | None) -> Iterator[Line]:
    """The tables: nodes of each cluster, slots in use, queue."""
    by_address = {health.node.address: health for health in view.checked}
    for number, cluster in enumerate(view.clusters):
        checked = [by_address[node.address] for node in cluster.nodes]
        if number:
            yield Line("")
        yield Line(f"{cluster.name}: {_summary(view, checked)}", bold=True)
        yield from _node_lines(view, checked, width)
    for title, entries in (("slots in use", _lease_entries(view)), ("queue for slots", _queue_entries(view))):
        yield Line("")
        yield Line(f"{title}: {len(entries) or 'none'}", bold=True)
        for head, prose in entries:
            yield Line(head)
            yield from (Line(text) for text in _below(prose, width))


def as_dict(view: View) -> dict[str, Any]:
    """The tables as JSON; times are seconds since the epoch."""
    clusters: dict[str, list[str]] = {}
    for cluster in view.clusters:
        for node in cluster.nodes:
            clusters.setdefault(node.address, []).append(cluster.name)
    triggers = view.triggers()
    return {
        "nodes": [
            {
                "name": health.node.name,
                "clusters": clusters[health.node.address],
                "address": health.node.address,
                "device": health.node.device,
                "slots": health.node.slots,
                "free_slots": _free(view, health),
                "reachable": not health.unreachable,
                "troubles": view.troubles_of(health),
                "notes": view.notes_of(health),
                "drained": [drain.cluster for drain in view.drains_of(health)],
                "disk_free_bytes": health.facts.disk_free_bytes if health.facts else None,
                "clock_skew_s": health.facts.clock_skew_s if health.facts else None,
                "runs": {run: list(health.jobs.get(run, ())) for run in health.runs},
            }
            for health in view.checked
        ],
        "leases": [
            lease.model_dump(mode="json") | {"trigger": triggers.get(lease.run), "live": lease.live(view.now)}
            for lease in view.leases
        ],
        "queue": [
            {
                "run": place.request.run,
                "trigger": triggers.get(place.request.run),
                "owner": place.request.owner,
                "since": place.request.created_at,
                "slots": [list(slot) for slot in place.request.slots],
                "position": place.position,
                "of": place.of,
                "why": _why(view, place),
            }
            for place in view.queue
        ],
    }


def _summary(view: View, checked: Sequence[NodeHealth]) -> str:
    slots, free = sum(health.node.slots for health in checked), sum(_free(view, health) for health in checked)
    bad = sum(bool(view.troubles_of(health)) for health in checked)
    nodes = counted(len(checked), "node")
    return f"{nodes}, {free} of {slots} slots free" + (f", {bad} unhealthy" if bad else "")


def _node_lines(view: View, checked: Sequence[NodeHealth], width: int | None) -> Iterator[Line]:
    rows = []
    for health in checked:
        facts = health.facts
        disk = size(facts.disk_free_bytes) if facts else "?"
        skew = offset(facts.clock_skew_s) if facts else "?"
        condition = "drained" if view.drains_of(health) else "ok"
        condition = "unhealthy" if view.troubles_of(health) else condition
        free = f"{_free(view, health)}/{health.node.slots}"
        rows.append((health.node.name, health.node.device, free, disk, skew, condition))
    head, *lines = columns(("NODE", "DEVICE", "FREE", "DISK", "CLOCK", "HEALTH"), rows, width=None)
    yield Line(head, dim=True)
    for health, line in zip(checked, lines, strict=True):
        troubles = view.troubles_of(health)
        yield Line(line, color="red" if troubles else None)
        yield from (Line(text, color="red") for text in _below(troubles, width))
        yield from (Line(text) for text in _below(view.notes_of(health), width))


def _below(prose: Sequence[str], width: int | None) -> list[str]:
    """Indented, wrapped lines; an id is never broken, even if its line is too long."""
    return [
        line
        for text in prose
        for line in textwrap.wrap(
            text,
            width or _ANY_WIDTH,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT * 2,
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]


def _lease_entries(view: View) -> list[tuple[str, list[str]]]:
    """(slots and run, owner and times of the lease)."""
    groups: dict[tuple[str, str, float, float], list[tuple[str, int]]] = {}
    for lease in view.leases:
        key = (lease.run, lease.owner, lease.acquired_at, lease.expires_at)
        groups.setdefault(key, []).append((lease.node, lease.slot))
    entries = []
    for (run, owner, since, until), slots in groups.items():
        ends = f"until {clock(until)} unless renewed" if until > view.now else f"expired at {clock(until)}"
        prose = [_who(view.runs.get(run), owner), f"since {clock(since)}, {ends}"]
        entries.append((f"{format_slots(slots, view.names)}: run {run}", prose))
    return entries


def _queue_entries(view: View) -> list[tuple[str, list[str]]]:
    """(number and run, owner, time in the queue and what it waits for)."""
    entries = []
    for number, place in enumerate(view.queue, 1):
        who = _who(view.runs.get(place.request.run), place.request.owner)
        prose = [who, f"waiting since {clock(place.request.created_at)}, position {place.position} of {place.of}"]
        prose += obstacles(place, view.triggers(), view.names) or ["next in queue"]
        entries.append((f"{number}  run {place.request.run}", prose))
    return entries


def _by(owner: str | None) -> str:
    return f" ({owner})" if owner else ""


def _who(run: Run | None, owner: str) -> str:
    return ", ".join(word for word in (run.trigger if run else "", owner) if word)


def _why(view: View, place: "Place") -> str:
    if place.free:
        return "next in queue"
    return waiting(place, view.triggers(), view.names)


def _free(view: View, health: NodeHealth) -> int:
    """Slots that a run could use now; 0 for an unreachable node."""
    return (
        0 if health.unreachable else health.node.slots - len({lease.slot for lease in view.held_on(health.node)})
    )
