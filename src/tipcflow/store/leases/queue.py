"""The queue for slots: waiting requests and their order.

A run may take slots that are free and not wanted by a request ahead of its own. Free slots are therefore reserved
for the first request that wants them, and slots that no earlier request wants are not left idle.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, delete, insert, select, update

from tipcflow.config.settings import settings
from tipcflow.domain import Frozen, priority_of
from tipcflow.domain.run.allocation_wait import AllocationWaitDocument
from tipcflow.store.base import Part, clock
from tipcflow.store.leases.moves import Groups, candidate_slots, moves
from tipcflow.store.leases.rows import (
    Lease,
    LeaseRequest,
    Slot,
    all_leases,
    all_requests,
    allocation_waits,
    before,
    in_order,
    leases_on,
    lock,
    requests_on,
    slots_held_by_others,
    waiting_since,
)
from tipcflow.store.run.plans import unknown_run
from tipcflow.store.schema import lease_requests, runs

# A waiter that returns within this time after its request expired keeps its place.
FORGET_S = 24 * 3600.0


class Place(Frozen):
    """The place of a run in the queue.

    Attributes:
        request: the run's request.
        held: leases of other runs on the wanted slots, including expired ones.
        ahead: requests ahead that want one of the same slots, in order.
        of: number of requests that want one of these slots, including its own.
        at: time of the query by the database's clock, seconds since the epoch.
        moved: node -> node of the request that has replaced it with this query.
    """

    request: LeaseRequest
    held: tuple[Lease, ...] = ()
    ahead: tuple[LeaseRequest, ...] = ()
    of: int = 1
    at: float = 0.0
    moved: Mapping[str, str] = {}

    @property
    def position(self) -> int:
        """1 for the next request."""
        return len(self.ahead) + 1

    @property
    def must_check_nodes(self) -> bool:
        """Whether only expired leases block the request: the nodes must show whether their runs have ended."""
        return not self.ahead and not any(lease.live(self.at) for lease in self.held)

    @property
    def free(self) -> bool:
        """Whether nothing blocks the request."""
        return not self.held and not self.ahead


class LeaseQueue(Part):
    """Table lease_requests."""

    _rise_s: float | None = None

    @property
    def rise_s(self) -> float:
        """Time after which a request rises by one priority, seconds; read from the settings once."""
        if self._rise_s is None:
            self._rise_s = settings().queue_rise_s
        return self._rise_s

    def join(
        self,
        run_id: str,
        slots: Sequence[Slot],
        *,
        owner: str,
        ttl_s: float,
        now: float | None = None,
        rise_s: float | None = None,
        groups: Groups = (),
    ) -> Place:
        """Join the queue or renew the request; a known run keeps its age.

        Args:
            slots: (node, slot index) pairs; all are wanted, or none.
            ttl_s: seconds after which the request expires without another call.
            rise_s: time after which a request rises by one priority; None: the settings' value.
            groups: addresses of nodes of which the run may use any: nodes that block it are replaced by free ones.

        Returns:
            What blocks the request. If nothing does, `Leases.acquire` gets the slots.

        Raises:
            ValueError: when no slot is named.
            ConfigError: no such run.
        """
        if not slots:
            raise ValueError("no slots to wait for")
        rise_s = self.rise_s if rise_s is None else rise_s
        with self._write() as connection:
            lock(connection)
            now = clock(connection) if now is None else now
            connection.execute(delete(lease_requests).where(lease_requests.c.expires_at < now - FORGET_S))
            candidates = candidate_slots(slots, groups)
            requests = {request.run: request for request in requests_on(connection, run_id, candidates)}
            held = leases_on(connection, slots)
            trigger = _trigger_of(connection, run_id)
            known = requests.get(run_id)
            request = LeaseRequest(
                run=run_id,
                slots=tuple(sorted(set(slots))),
                owner=owner,
                priority=priority_of(trigger),
                created_at=known.created_at if known else now,
                expires_at=now + ttl_s,
            )
            place = _place(request, held, list(requests.values()), now, rise_s)
            if groups and not place.free:
                taken = slots_held_by_others(connection, run_id, candidates)
                moved = moves(request, groups, taken, requests.values(), now, rise_s)
                to = tuple(sorted((moved.get(node, node), slot) for node, slot in request.slots))
                request = request.model_copy(update={"slots": to})
                place = _place(request, held, list(requests.values()), now, rise_s)
                place = place.model_copy(update={"moved": moved})
            if known:
                same = update(lease_requests).where(lease_requests.c.run == run_id)
                connection.execute(same.values(**request.model_dump()))
            else:
                connection.execute(insert(lease_requests), request.model_dump())
            return place

    def pass_on(self, run_id: str, heir: str, *, ttl_s: float, now: float | None = None) -> bool:
        """Give a run's request, with its age, to another run; return False if the run has none.

        Args:
            heir: an existing run without a request.
            ttl_s: seconds after which the request expires unless `heir` renews it.
        """
        with self._write() as connection:
            lock(connection)
            now = clock(connection) if now is None else now
            own_request = update(lease_requests).where(lease_requests.c.run == run_id)
            changed = connection.execute(own_request.values(run=heir, expires_at=now + ttl_s))
        return bool(changed.rowcount)

    def leave(self, run_id: str) -> bool:
        """Drop a run's request; return whether there was one."""
        with self._write() as connection:
            lock(connection)
            deleted = connection.execute(delete(lease_requests).where(lease_requests.c.run == run_id))
        return bool(deleted.rowcount)

    def places(self, now: float | None = None, rise_s: float | None = None) -> list[Place]:
        """Return all waiting runs in queue order, without expired requests."""
        rise_s = self.rise_s if rise_s is None else rise_s
        with self._read() as connection:
            now = clock(connection) if now is None else now
            held, requests = all_leases(connection), all_requests(connection)
        return [_place(request, held, requests, now, rise_s) for request in in_order(requests, now, rise_s)]

    def waiting(self) -> frozenset[str]:
        """Return the runs that wait for slots, or for an allocation by Slurm, which have no place."""
        with self._read() as connection:
            return frozenset(waiting_since(connection, clock(connection)))

    def in_slurm(self) -> dict[str, AllocationWaitDocument]:
        """Return run -> record of its wait for an allocation by Slurm."""
        with self._read() as connection:
            return allocation_waits(connection, clock(connection))

    def drop_dead(self, now: float | None = None) -> list[str]:
        """Delete expired requests; return their runs."""
        with self._write() as connection:
            lock(connection)
            now = clock(connection) if now is None else now
            dead = sorted(request.run for request in all_requests(connection) if not request.live(now))
            connection.execute(delete(lease_requests).where(lease_requests.c.run.in_(dead)))
        return dead


def _trigger_of(connection: Connection, run_id: str) -> str:
    trigger = connection.execute(select(runs.c.trigger).where(runs.c.id == run_id)).scalar_one_or_none()
    if trigger is None:
        raise unknown_run(connection, run_id)
    return str(trigger)


def _place(
    request: LeaseRequest, held: Sequence[Lease], requests: Sequence[LeaseRequest], now: float, rise_s: float
) -> Place:
    wanted = set(request.slots)
    others = [other for other in requests if other.run != request.run and other.live(now)]
    # Slots that the run still leases, expired or not, are unavailable to others: it gets them whatever the queue.
    has_all = wanted <= {(lease.node, lease.slot) for lease in held if lease.run == request.run}
    return Place.model_construct(
        request=request,
        held=tuple(lease for lease in held if (lease.node, lease.slot) in wanted and lease.run != request.run),
        ahead=() if has_all else tuple(before(request, others, now, rise_s)),
        of=1 + sum(other.wants_one_of(wanted) for other in others),
        at=now,
    )
