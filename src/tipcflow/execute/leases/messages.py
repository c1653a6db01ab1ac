"""Messages about why a run waits for slots: for the terminal, task logs and the table of nodes."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tipcflow.domain.numbers.units import plural, utc

if TYPE_CHECKING:
    from tipcflow.domain import Cluster
    from tipcflow.store import Place, Store

Slot = tuple[str, int]


def waiting(place: "Place", triggers: Mapping[str, str], names: Mapping[str, str]) -> str:
    """Return one line: missing slots, their holders since when, and the position in the queue.

    Args:
        triggers: run -> trigger source.
        names: node address -> name.
    """
    place_words = f"position {place.position} of {place.of}"
    return f"waiting for {'; '.join([*obstacles(place, triggers, names), place_words])}"


def obstacles(place: "Place", triggers: Mapping[str, str], names: Mapping[str, str]) -> list[str]:
    """Return what blocks a request: the slots, and the runs that hold them or are next in line for them."""
    held = [
        f"{format_slots(slots, names)}: held by {_run(run, triggers)} since {clock(since)}"
        + (f", lease expired at {clock(ends)}" if ends <= place.at else "")
        for (run, since, ends), slots in _held(place).items()
    ]
    reserved = _kept(place)
    if reserved and place.ahead:
        run = _run(place.ahead[0].run, triggers)
        held.append(f"{format_slots(reserved, names)}: reserved for {run}, which is ahead in the queue")
    return held


def unknown_runs_message(runs_by_node: Mapping[str, Iterable[str]], names: Mapping[str, str]) -> str:
    """Return one line about nodes that are free in this database but have running processes of unknown runs."""
    lines = [
        f"{names.get(node, node)}: run {', run '.join(sorted(runs))} has no lease in this database"
        for node, runs in sorted(runs_by_node.items())
    ]
    return f"waiting for {'; '.join(lines)}: other controller or leftover (see `tipcflow nodes`)"


def format_slots(slots: Iterable[Slot], names: Mapping[str, str]) -> str:
    """Return for example `node-1 slots 0-3, node-2 slot 0`."""
    by_node: dict[str, list[int]] = defaultdict(list)
    for node, slot in sorted(set(slots)):
        by_node[node].append(slot)
    return ", ".join(
        f"{names.get(node, node)} {plural(len(numbers), 'slot')} {_ranges(numbers)}"
        for node, numbers in by_node.items()
    )


def triggers_of(store: "Store", runs: Iterable[str]) -> dict[str, str]:
    """Return run -> trigger source."""
    return {run.id: run.trigger for run in store.runs.known(sorted(set(runs))).values()}


def runs_in_the_way(place: "Place") -> set[str]:
    """Return the runs that `waiting` names."""
    return {lease.run for lease in place.held} | {request.run for request in place.ahead}


def names_of(*clusters: "Cluster") -> dict[str, str]:
    """Return node address -> name."""
    return {node.address: node.name for cluster in clusters for node in cluster.nodes}


def clock(epoch: float) -> str:
    """Format a time as everywhere in tipcflow."""
    return f"{utc(epoch)} UTC"


def _held(place: "Place") -> dict[tuple[str, float, float], list[Slot]]:
    by_lease: dict[tuple[str, float, float], list[Slot]] = defaultdict(list)
    for lease in place.held:
        by_lease[lease.run, lease.acquired_at, lease.expires_at].append((lease.node, lease.slot))
    return by_lease


def _kept(place: "Place") -> set[Slot]:
    """Return the free slots that a request ahead in the queue wants."""
    wanted = {slot for request in place.ahead for slot in request.slots} & set(place.request.slots)
    return wanted - {(lease.node, lease.slot) for lease in place.held}


def _run(run: str, triggers: Mapping[str, str]) -> str:
    return f"run {run} ({triggers[run]})" if triggers.get(run) else f"run {run}"


def _ranges(numbers: list[int]) -> str:
    """Format `[0, 1, 2, 5]` as `0-2,5`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
