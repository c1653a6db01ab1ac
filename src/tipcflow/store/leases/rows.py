"""Leases and requests as rows, and the lock that serializes their changes."""

from collections.abc import Iterable

from sqlalchemy import Connection, select

from tipcflow.domain import Frozen
from tipcflow.domain.numbers.units import rough
from tipcflow.domain.priority import risen
from tipcflow.store.schema import fences, lease_requests, leases

Slot = tuple[str, int]


class Lease(Frozen):
    """One slot of a node, held by a run until `expires_at` (seconds since the epoch).

    Attributes:
        owner: requester, for messages: `user@host pid`, or a scheduler's name.
        fence: number that the node checks; larger is newer.
    """

    node: str
    slot: int
    run: str
    owner: str
    fence: int
    acquired_at: float
    expires_at: float

    def live(self, now: float) -> bool:
        """Whether the lease has not expired."""
        return now < self.expires_at

    def describe(self, now: float) -> str:
        """Describe the lease in one line: slot, holder and remaining time."""
        left = self.expires_at - now
        until = f"for another {rough(left)}" if left > 0 else f"expired {rough(-left)} ago"
        return f"slot {self.slot} of node {self.node} is held by run {self.run} ({self.owner}), {until}"


class LeaseRequest(Frozen):
    """A run that waits for slots: all of them, or none.

    Attributes:
        slots: (node address, slot) of every wanted slot.
        priority: initial priority; see `rank`.
        created_at: start of the wait, seconds since the epoch.
        expires_at: end of the request unless it is renewed.
    """

    run: str
    slots: tuple[Slot, ...]
    owner: str
    priority: int
    created_at: float
    expires_at: float

    def live(self, now: float) -> bool:
        """Whether the request was renewed in time; an expired one blocks no other."""
        return now < self.expires_at

    def rank(self, now: float, rise_s: float) -> tuple[int, float, str]:
        """Return the sort key of the queue: priority after waiting, then age."""
        return risen(self.priority, now - self.created_at, rise_s), self.created_at, self.run

    def wants_one_of(self, slots: Iterable[Slot]) -> bool:
        """Whether the request wants any of these slots."""
        return not set(slots).isdisjoint(self.slots)


def lock(connection: Connection) -> int:
    """Lock out other changes of leases (SQLite did so at BEGIN); return the last fence."""
    return int(connection.execute(select(fences.c.last).with_for_update()).scalar_one())


def all_leases(connection: Connection) -> list[Lease]:
    """Return all leases including expired ones, by node and slot."""
    rows = connection.execute(select(leases).order_by(leases.c.node, leases.c.slot)).mappings()
    return [Lease.model_construct(**row) for row in rows]


def all_requests(connection: Connection) -> list[LeaseRequest]:
    """Return all requests including expired ones."""
    rows = connection.execute(select(lease_requests)).mappings()
    # Not validated again: every waiter reads all of them at each poll.
    return [
        LeaseRequest.model_construct(
            **{**row, "slots": tuple((str(node), int(slot)) for node, slot in row["slots"])}
        )
        for row in rows
    ]


def in_order(requests: Iterable[LeaseRequest], now: float, rise_s: float) -> list[LeaseRequest]:
    """Return the unexpired requests in queue order."""
    return sorted(
        (request for request in requests if request.live(now)), key=lambda request: request.rank(now, rise_s)
    )


def before(
    request: LeaseRequest, requests: Iterable[LeaseRequest], now: float, rise_s: float
) -> list[LeaseRequest]:
    """Return the unexpired requests ahead of `request` that want one of its slots, which it must not take."""
    rank, wanted = request.rank(now, rise_s), set(request.slots)
    ahead = [
        other
        for other in requests
        if other.run != request.run and other.rank(now, rise_s) < rank and other.wants_one_of(wanted)
    ]
    return in_order(ahead, now, rise_s)
