"""The queue for slots: who waits for what, and whose turn it is.

A run may take slots when nobody holds them and no request before its own wants them. So slots that come free are
kept for whoever is first in line for them, and what nobody before wants is not left idle.
"""

from collections.abc import Sequence

from sqlalchemy import delete, insert, select, update

from tipcflow.config.settings import settings
from tipcflow.domain import Frozen, priority_of
from tipcflow.store.base import StoreBase, clock
from tipcflow.store.leases.rows import Lease, LeaseRequest, Slot, all_leases, all_requests, before, in_order, lock
from tipcflow.store.schema import lease_requests, runs

# A waiter that comes back within this time after it was given up keeps its place.
FORGET_S = 24 * 3600.0


class Place(Frozen):
    """Where a run stands in the queue.

    Attributes:
        request: its own.
        held: leases of other runs on what it wants, expired ones too.
        ahead: the requests before its own that want one of the same slots, the first one first.
        of: how many requests want one of these slots, its own included.
        at: when the database was asked, by its clock; seconds since the epoch.
    """

    request: LeaseRequest
    held: tuple[Lease, ...] = ()
    ahead: tuple[LeaseRequest, ...] = ()
    of: int = 1
    at: float = 0.0

    @property
    def position(self) -> int:
        """1 for who is next."""
        return len(self.ahead) + 1

    @property
    def for_nodes_to_say(self) -> bool:
        """Whether nothing stands in its way that holds: the nodes may have something of runs that are no more."""
        return not self.ahead and not any(lease.live(self.at) for lease in self.held)

    @property
    def free(self) -> bool:
        """Whether nothing stands in its way."""
        return not self.held and not self.ahead


class LeaseQueueMixin(StoreBase):
    """Table lease_requests."""

    _rise_s: float | None = None

    @property
    def queue_rise_s(self) -> float:
        """After how long a request rises one priority, seconds; as the settings said when it was first asked."""
        if self._rise_s is None:
            self._rise_s = settings().queue_rise_s
        return self._rise_s

    def queue_for_leases(
        self,
        run_id: str,
        slots: Sequence[Slot],
        *,
        owner: str,
        ttl_s: float,
        now: float | None = None,
        rise_s: float | None = None,
    ) -> Place:
        """Join the queue, or say that one still waits; a run that was there keeps its age.

        Args:
            slots: (node, slot index) pairs; all of them are wanted, or none.
            ttl_s: seconds after which the request counts no more unless this is called again.
            rise_s: after how long a request rises one priority; None for what the settings say.

        Returns:
            What stands in the way. When nothing does, `acquire_leases` gets the slots.

        Raises:
            ValueError: when no slot is named.
        """
        if not slots:
            raise ValueError("no slots to wait for")
        rise_s = self.queue_rise_s if rise_s is None else rise_s
        with self._write() as connection:
            lock(connection)
            now = clock(connection) if now is None else now
            connection.execute(delete(lease_requests).where(lease_requests.c.expires_at < now - FORGET_S))
            known = {one.run: one for one in all_requests(connection)}
            trigger = connection.execute(select(runs.c.trigger).where(runs.c.id == run_id)).scalar_one()
            request = LeaseRequest(
                run=run_id,
                slots=tuple(sorted(set(slots))),
                owner=owner,
                priority=priority_of(trigger),
                created_at=known[run_id].created_at if run_id in known else now,
                expires_at=now + ttl_s,
            )
            if run_id in known:
                same = lease_requests.c.run == run_id
                connection.execute(update(lease_requests).where(same).values(**request.model_dump()))
            else:
                connection.execute(insert(lease_requests), request.model_dump())
            return _place(request, all_leases(connection), list(known.values()), now, rise_s)

    def leave_queue(self, run_id: str) -> bool:
        """Take a run's request back; whether there was one."""
        with self._write() as connection:
            lock(connection)
            gone = connection.execute(delete(lease_requests).where(lease_requests.c.run == run_id))
        return bool(gone.rowcount)

    def lease_queue(self, now: float | None = None, rise_s: float | None = None) -> list[Place]:
        """All runs that wait, who goes first stands first; those whose waiters were not heard of are left out."""
        rise_s = self.queue_rise_s if rise_s is None else rise_s
        with self._read() as connection:
            now = clock(connection) if now is None else now
            held, requests = all_leases(connection), all_requests(connection)
        return [_place(one, held, requests, now, rise_s) for one in in_order(requests, now, rise_s)]

    def drop_dead_requests(self, now: float | None = None) -> list[str]:
        """Forget the requests whose waiters were not heard of in time; returns their runs."""
        with self._write() as connection:
            lock(connection)
            now = clock(connection) if now is None else now
            dead = sorted(one.run for one in all_requests(connection) if not one.live(now))
            connection.execute(delete(lease_requests).where(lease_requests.c.run.in_(dead)))
        return dead


def _place(
    request: LeaseRequest, held: Sequence[Lease], requests: Sequence[LeaseRequest], now: float, rise_s: float
) -> Place:
    wanted = set(request.slots)
    others = [one for one in requests if one.run != request.run and one.live(now)]
    # What it had and nobody dropped, expired or not, nobody else can get: it is let in whoever waits.
    has_all = wanted <= {(one.node, one.slot) for one in held if one.run == request.run}
    return Place.model_construct(
        request=request,
        held=tuple(one for one in held if (one.node, one.slot) in wanted and one.run != request.run),
        ahead=() if has_all else tuple(before(request, others, now, rise_s)),
        of=1 + sum(one.wants_one_of(wanted) for one in others),
        at=now,
    )
