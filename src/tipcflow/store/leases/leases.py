"""Leases: which run may use which slots of which nodes, until when, with which fence.

The lease in the database is the intent; the runner on the node checks the fence and decides.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, delete, insert, select, update

from tipcflow.domain import priority_of
from tipcflow.store.base import Database, Part, clock, upsert
from tipcflow.store.leases.queue import LeaseQueue
from tipcflow.store.leases.rows import (
    Lease,
    LeaseRequest,
    Slot,
    all_leases,
    before,
    leases_of,
    leases_on,
    lock,
    requests_on,
)
from tipcflow.store.schema import fences, lease_requests, leases, runs


class Leases(Part):
    """Tables leases and fences; a lease ends its run's request in table lease_requests in the same transaction."""

    def __init__(self, database: Database, queue: LeaseQueue) -> None:
        super().__init__(database)
        self._queue = queue

    def acquire(
        self,
        run_id: str,
        slots: Sequence[Slot],
        *,
        owner: str,
        ttl_s: float,
        now: float | None = None,
        rise_s: float | None = None,
        above: int = 0,
    ) -> int | None:
        """Lease slots, all or none, in one transaction; ends the run's request in the queue.

        A run that holds all of them keeps its fence and gets `ttl_s` from now; its own expired leases do not block
        it, because its steps check their own jobs first. Another run's expired lease does: find it in `all()`,
        list its node, and if nothing of that run is there, `drop_expired` it and retry.

        Args:
            slots: (node, slot index) pairs.
            ttl_s: seconds from `now` after which the lease ends unless it is renewed.
            now: seconds since the epoch; None: the database's clock, the only clock shared by all controllers.
            rise_s: time after which a request rises by one priority; None: the settings' value.
            above: the largest fence seen by any of the nodes, from any controller.

        Returns:
            The fence, larger than every earlier one of this database and than `above`; None if another run holds a
            slot or is ahead.

        Raises:
            ValueError: no slot is named.
        """
        if not slots:
            raise ValueError("no slots to lease")
        rise_s = self._queue.rise_s if rise_s is None else rise_s
        wanted = sorted(set(slots))
        with self._write() as connection:
            last = lock(connection)
            now = clock(connection) if now is None else now
            held = [lease for lease in leases_on(connection, wanted) if (lease.node, lease.slot) in wanted]
            if any(lease.run != run_id for lease in held):
                return None
            if len(held) < len(wanted) and _goes_after_others(connection, run_id, wanted, now, rise_s):
                return None
            live_leases = [lease for lease in held if lease.live(now)]
            if len(live_leases) == len(wanted) and len({lease.fence for lease in live_leases}) == 1:
                fence = live_leases[0].fence
            else:
                fence = max(last, above) + 1
                connection.execute(update(fences).values(last=fence))
            times = {"acquired_at": now, "expires_at": now + ttl_s}
            rows = [
                Lease(node=node, slot=slot, run=run_id, owner=owner, fence=fence, **times).model_dump()
                for node, slot in wanted
            ]
            connection.execute(upsert(connection, leases), rows)
            connection.execute(delete(lease_requests).where(lease_requests.c.run == run_id))
        return fence

    def renew(self, run_id: str, ttl_s: float, now: float | None = None) -> bool:
        """Extend a run's leases to `ttl_s` seconds from now.

        Returns:
            False, without a change, if the run holds none or one of them has expired.
        """
        with self._write() as connection:
            lock(connection)
            now = clock(connection) if now is None else now
            own_leases = leases_of(connection, run_id)
            if not own_leases or not all(lease.live(now) for lease in own_leases):
                return False
            renewed = update(leases).where(leases.c.run == run_id).values(expires_at=now + ttl_s)
            connection.execute(renewed)
        return True

    def hand_over(self, run_id: str, heir: str, *, ttl_s: float, now: float | None = None) -> bool:
        """Give all leases of a run to another run, with a new fence: no waiting run gets the slots in between.

        Args:
            heir: an existing run.
            ttl_s: seconds after which the leases end unless `heir` renews them.

        Returns:
            False, without a change, if the run holds none or one of them has expired.
        """
        with self._write() as connection:
            last = lock(connection)
            now = clock(connection) if now is None else now
            own_leases = leases_of(connection, run_id)
            if not own_leases or not all(lease.live(now) for lease in own_leases):
                return False
            fence = max(last, *(lease.fence for lease in own_leases)) + 1
            connection.execute(update(fences).values(last=fence))
            values = {"run": heir, "fence": fence, "acquired_at": now, "expires_at": now + ttl_s}
            connection.execute(update(leases).where(leases.c.run == run_id).values(**values))
        return True

    def release(
        self, run_id: str, *, keep: Iterable[str] = (), keep_s: float | None = None, queue_s: float | None = None
    ) -> int:
        """Release a run's slots and its request, if any; return the number of released slots.

        Args:
            keep: addresses of nodes that could not be listed: their slots stay until the lease has expired and the
                node was found empty.
            keep_s: the kept leases expire within this time; None: they keep their expiry, which in Airflow can be
                hours away.
            queue_s: queue the run for its slots, in the same transaction, for this time: a place for the run that
                follows (`LeaseQueue.pass_on`). None: do not.
        """
        deletion = delete(leases).where(leases.c.run == run_id, leases.c.node.not_in(list(keep)))
        with self._write() as connection:
            lock(connection)
            connection.execute(delete(lease_requests).where(lease_requests.c.run == run_id))
            if queue_s is not None and (held := leases_of(connection, run_id)):
                connection.execute(insert(lease_requests), _request_again(connection, held, queue_s).model_dump())
            if keep_s is not None:
                until = clock(connection) + keep_s
                late = (leases.c.run == run_id, leases.c.expires_at > until)
                connection.execute(update(leases).where(*late).values(expires_at=until))
            return connection.execute(deletion).rowcount

    def drop_expired(self, expired: Lease | Iterable[Lease], now: float | None = None) -> int:
        """Delete leases whose nodes were listed and found empty; leases that were renewed or granted since stay.

        Returns:
            Number of deleted leases.
        """
        dropped = 0
        with self._write() as connection:
            lock(connection)
            now = clock(connection) if now is None else now
            for lease in [expired] if isinstance(expired, Lease) else expired:
                same = (leases.c.node == lease.node, leases.c.slot == lease.slot, leases.c.run == lease.run)
                stale = delete(leases).where(*same, leases.c.fence == lease.fence, leases.c.expires_at <= now)
                dropped += connection.execute(stale).rowcount
        return dropped

    def expired_nodes(self, now: float | None = None) -> frozenset[str]:
        """Return the addresses of nodes with an expired lease."""
        with self._read() as connection:
            now = clock(connection) if now is None else now
            expired = select(leases.c.node).where(leases.c.expires_at <= now).distinct()
            return frozenset(connection.execute(expired).scalars())

    def all(self) -> list[Lease]:
        """Return all leases including expired ones, by node and slot."""
        with self._read() as connection:
            return all_leases(connection)


def _request_again(connection: Connection, held: list[Lease], ttl_s: float) -> LeaseRequest:
    """Return a new request for the slots that a run holds."""
    now, run = clock(connection), held[0].run
    trigger = connection.execute(select(runs.c.trigger).where(runs.c.id == run)).scalar_one()
    return LeaseRequest(
        run=run,
        slots=tuple((lease.node, lease.slot) for lease in held),
        owner=held[0].owner,
        priority=priority_of(trigger),
        created_at=now,
        expires_at=now + ttl_s,
    )


def _goes_after_others(connection: Connection, run_id: str, wanted: list[Slot], now: float, rise_s: float) -> bool:
    """Whether a request ahead in the queue wants one of these slots."""
    requests = requests_on(connection, run_id, wanted)
    own_request = next((request for request in requests if request.run == run_id), None)
    if own_request is None:
        trigger = connection.execute(select(runs.c.trigger).where(runs.c.id == run_id)).scalar() or ""
        own_request = LeaseRequest(
            run=run_id, slots=(), owner="", priority=priority_of(trigger), created_at=now, expires_at=now
        )
    return bool(before(own_request.model_copy(update={"slots": tuple(wanted)}), requests, now, rise_s))
