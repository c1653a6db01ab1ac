"""Leases and requests as rows, and the lock that serializes their changes."""

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Text, or_, select, type_coerce

from tipcflow.domain import Frozen
from tipcflow.domain.numbers.units import rough
from tipcflow.domain.priority import risen
from tipcflow.domain.run.allocation_wait import AllocationWaitDocument
from tipcflow.store.base import among
from tipcflow.store.schema import documents, fences, lease_requests, leases, runs

Slot = tuple[str, int]
# Above this number of nodes, all requests are read instead of those that name one of the nodes.
_NAMED = 16


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
    return _leases(connection)


def leases_of(connection: Connection, run: str) -> list[Lease]:
    """Return the leases of a run, including expired ones."""
    return _leases(connection, leases.c.run == run)


def leases_on(connection: Connection, slots: Iterable[Slot]) -> list[Lease]:
    """Return the leases of all runs on the nodes of these slots, including expired ones."""
    return _leases(connection, among(connection, leases.c.node, _nodes(slots)))


def slots_held_by_others(connection: Connection, run: str, slots: Iterable[Slot]) -> set[Slot]:
    """Return the slots that other runs hold on the nodes of these slots, also by expired leases."""
    on_nodes = among(connection, leases.c.node, _nodes(slots))
    rows = connection.execute(select(leases.c.node, leases.c.slot).where(leases.c.run != run, on_nodes))
    return {(node, slot) for node, slot in rows}


def _leases(connection: Connection, *where: ColumnElement[bool]) -> list[Lease]:
    rows = connection.execute(select(leases).where(*where).order_by(leases.c.node, leases.c.slot)).mappings()
    return [Lease.model_construct(**row) for row in rows]


def all_requests(connection: Connection) -> list[LeaseRequest]:
    """Return all requests including expired ones."""
    return _requests(connection, select(lease_requests))


def requests_on(connection: Connection, run: str, slots: Iterable[Slot]) -> list[LeaseRequest]:
    """Return the request of a run, and those that want a slot on the nodes of `slots`, including expired ones.

    Every waiter reads them at each poll, while it locks the queue: the database selects them.
    """
    nodes = _nodes(slots)
    if len(nodes) > _NAMED:
        return all_requests(connection)
    text = type_coerce(lease_requests.c.slots, Text)
    named = [text.contains(json.dumps(node), autoescape=True) for node in nodes]
    return _requests(connection, select(lease_requests).where(or_(lease_requests.c.run == run, *named)))


def waiting_since(connection: Connection, now: float) -> dict[str, float]:
    """Return run -> start of its wait for slots, or for an allocation by Slurm, seconds since the epoch.

    Expired requests, and waits of controllers that died, do not count.
    """
    since = {request.run: request.created_at for request in all_requests(connection) if request.live(now)}
    return since | {run: min(now, wait.since) for run, wait in allocation_waits(connection, now).items()}


def allocation_waits(connection: Connection, now: float) -> dict[str, AllocationWaitDocument]:
    """Return run -> record of its wait for an allocation by Slurm, without those of controllers that died."""
    query = (
        select(documents.c.run, documents.c.body)
        .join(runs, runs.c.id == documents.c.run)
        .where(runs.c.status.is_(None), documents.c.name == AllocationWaitDocument.NAME)
    )
    waits = {run: AllocationWaitDocument.load(run, body) for run, body in connection.execute(query)}
    return {run: wait for run, wait in waits.items() if now < wait.until}


def _nodes(slots: Iterable[Slot]) -> list[str]:
    return sorted({node for node, _ in slots})


def _requests(connection: Connection, query: Select[Any]) -> list[LeaseRequest]:
    # Not validated again: they are read often.
    return [
        LeaseRequest.model_construct(
            **{**row, "slots": tuple((str(node), int(slot)) for node, slot in row["slots"])}
        )
        for row in connection.execute(query).mappings()
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
