"""Which nodes a waiting run moves to: free ones that no earlier request wants, instead of nodes that block it."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from tipcflow.store.leases.rows import LeaseRequest, Slot

# Nodes, by address, of which a run may use any instead of another.
Groups = Sequence[Sequence[str]]


def candidate_slots(slots: Iterable[Slot], groups: Groups) -> list[Slot]:
    """Return the wanted slots, and the first slot of each node that may replace one of their nodes."""
    wanted = {node for node, _ in slots}
    others = {node for group in groups if wanted & set(group) for node in group}
    return [*slots, *((node, 0) for node in sorted(others - wanted))]


def moves(
    request: LeaseRequest,
    groups: Groups,
    taken: Collection[Slot],
    requests: Iterable[LeaseRequest],
    now: float,
    rise_s: float,
) -> dict[str, str]:
    """Return wanted node -> node that replaces it, for nodes with a slot that another run holds or is to get.

    A node stays if its slots are free for the run, so a run that needs several nodes collects them. No earlier
    request loses a slot that it wants, and the run gives up only what it could not have.

    Args:
        taken: slots of all candidates that other runs hold.
        requests: those for all candidates.
    """
    rank = request.rank(now, rise_s)
    blocked = set(taken)
    for other in requests:
        if other.run != request.run and other.live(now) and other.rank(now, rise_s) < rank:
            blocked.update(other.slots)
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for node, slot in request.slots:
        numbers[node].append(slot)
    found: dict[str, str] = {}
    for node, wanted in numbers.items():
        if not any((node, slot) in blocked for slot in wanted):
            continue
        used = numbers.keys() | set(found.values())
        group = next((group for group in groups if node in group), ())
        for other_node in group:
            if other_node not in used and not any((other_node, slot) in blocked for slot in wanted):
                found[node] = other_node
                break
    return found
