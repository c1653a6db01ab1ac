"""Leases: which run may use which slots of which nodes, for how long, under which fence.

The database lease is the intent; the runner on the node checks the fence and has the last word.
"""

import time
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, delete, select, update

from tipcflow.domain import Frozen
from tipcflow.store.base import StoreBase, upsert
from tipcflow.store.schema import fences, leases

Slot = tuple[str, int]


class Lease(Frozen):
    """One slot of a node, held by a run until `expires_at` (seconds since the epoch).

    Attributes:
        owner: who asked, for messages: `user@host pid`, a scheduler's name.
        fence: number that the node checks; larger means later.
    """

    node: str
    slot: int
    run: str
    owner: str
    fence: int
    acquired_at: float
    expires_at: float

    def live(self, now: float) -> bool:
        """Whether it still holds."""
        return now < self.expires_at

    def describe(self, now: float) -> str:
        """One line for a person: what is held by whom, and for how long."""
        left = self.expires_at - now
        until = f"for another {left:.0f} s" if left > 0 else f"expired {-left:.0f} s ago"
        return f"slot {self.slot} of node {self.node} is held by run {self.run} ({self.owner}), {until}"


class LeasesMixin(StoreBase):
    """Tables leases and fences."""

    def acquire_leases(
        self, run_id: str, slots: Sequence[Slot], *, owner: str, ttl_s: float, now: float | None = None
    ) -> int | None:
        """Lease slots, all or none, in one transaction.

        A run that holds all of them already keeps its fence and gets `ttl_s` from now; its own expired leases are
        no obstacle, since its steps look at their own jobs first. An expired lease of another run stands in the
        way as a live one does: find it in `leases()`, list its node, and when nothing of that run is left there,
        `drop_expired` it and ask again.

        Args:
            slots: (node, slot index) pairs.
            ttl_s: seconds from `now` after which the lease ends unless it is renewed.

        Returns:
            The fence, larger than every earlier one; None when another run holds one of the slots.

        Raises:
            ValueError: when no slot is named.
        """
        if not slots:
            raise ValueError("no slots to lease")
        now = time.time() if now is None else now
        wanted = sorted(set(slots))
        with self._write() as connection:
            last = _lock(connection)
            held = [lease for lease in _all(connection) if (lease.node, lease.slot) in wanted]
            if any(lease.run != run_id for lease in held):
                return None
            mine = [lease for lease in held if lease.live(now)]
            if len(mine) == len(wanted) and len({lease.fence for lease in mine}) == 1:
                fence = mine[0].fence
            else:
                fence = max(last + 1, int(now * 1000))
                connection.execute(update(fences).values(last=fence))
            rows = [
                Lease(
                    node=node,
                    slot=slot,
                    run=run_id,
                    owner=owner,
                    fence=fence,
                    acquired_at=now,
                    expires_at=now + ttl_s,
                ).model_dump()
                for node, slot in wanted
            ]
            connection.execute(upsert(connection, leases), rows)
        return fence

    def renew_leases(self, run_id: str, ttl_s: float, now: float | None = None) -> bool:
        """Let a run's leases end `ttl_s` seconds from now.

        Returns:
            False, with nothing changed, when the run holds none or one of them has expired.
        """
        now = time.time() if now is None else now
        with self._write() as connection:
            _lock(connection)
            mine = [lease for lease in _all(connection) if lease.run == run_id]
            if not mine or not all(lease.live(now) for lease in mine):
                return False
            renewed = update(leases).where(leases.c.run == run_id).values(expires_at=now + ttl_s)
            connection.execute(renewed)
        return True

    def release_leases(self, run_id: str, *, keep: Iterable[str] = ()) -> int:
        """Give a run's slots back; returns how many were given back.

        Args:
            keep: addresses of nodes that could not be listed: their slots stay until the lease has run out and
                the node was found empty.
        """
        mine = delete(leases).where(leases.c.run == run_id, leases.c.node.not_in(list(keep)))
        with self._write() as connection:
            _lock(connection)
            return connection.execute(mine).rowcount

    def drop_expired(self, expired: Lease | Iterable[Lease], now: float | None = None) -> int:
        """Forget leases whose nodes were listed and found empty; those that were renewed or granted since stay.

        Returns:
            How many were dropped.
        """
        now = time.time() if now is None else now
        dropped = 0
        with self._write() as connection:
            _lock(connection)
            for lease in [expired] if isinstance(expired, Lease) else expired:
                same = (leases.c.node == lease.node, leases.c.slot == lease.slot, leases.c.run == lease.run)
                stale = delete(leases).where(*same, leases.c.fence == lease.fence, leases.c.expires_at <= now)
                dropped += connection.execute(stale).rowcount
        return dropped

    def leases(self) -> list[Lease]:
        """All leases, expired ones too, by node and slot."""
        with self._read() as connection:
            return _all(connection)


def _lock(connection: Connection) -> int:
    """Queue up behind everybody else who changes leases (SQLite did so at BEGIN); returns the last fence."""
    return int(connection.execute(select(fences.c.last).with_for_update()).scalar_one())


def _all(connection: Connection) -> list[Lease]:
    rows = connection.execute(select(leases).order_by(leases.c.node, leases.c.slot)).mappings()
    return [Lease.model_validate(dict(row)) for row in rows]
