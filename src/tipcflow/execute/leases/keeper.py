"""Leases on slots: queued for, granted all or none, renewed during the run, released at its end."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from tipcflow.domain import DatabaseLostError, InfraError
from tipcflow.domain.numbers.units import limit
from tipcflow.execute.leases.messages import runs_in_the_way, triggers_of, unknown_runs_message, waiting

if TYPE_CHECKING:
    from tipcflow.execute.leases.claims import NodeClaims
    from tipcflow.store import Lease, Place, Store

TTL_S = 120.0
POLL_EVERY_S = 1.0
SLOWEST = 5
# A waiting run polls every second; listing a node may take up to half a minute.
WAITER_S = 60.0
# The request must stay valid between the triggerer and the task that it starts, even if the scheduler is busy.
TASK_WAITER_S = 300.0
# The result of listing a node is reused for this long.
CHECK_EVERY_S = 10.0


class LeaseKeeper:
    """Holds the leases of one run; use as a context manager.

    Args:
        empty: returns whether a node (by address) was listed and has no process of a run; an expired lease is
            granted again only then.
        claims: the run's claims on its nodes, which also make it wait for controllers with other databases.
        report: receives one line whenever the reason for waiting changes.
        ttl_s: lifetime of the lease without renewal, seconds.
        waiter_s: lifetime of the request without a new poll, seconds.
        names: node address -> name, for messages.
        cancel: set when a user stops the run; this keeper sets it if the database's file is lost.
    """

    def __init__(
        self,
        store: "Store",
        run: str,
        slots: Iterable[tuple[str, int]],
        *,
        owner: str,
        wait_s: float,
        empty: Callable[[str, str], bool],
        report: Callable[[str], None],
        claims: "NodeClaims | None" = None,
        cancel: threading.Event | None = None,
        ttl_s: float = TTL_S,
        waiter_s: float = WAITER_S,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._store = store
        self._run = run
        self._slots = sorted(set(slots))
        self._owner = owner
        self._wait_s = wait_s
        self._empty = empty
        self._claims = claims
        self._report = report
        self._cancel = cancel or threading.Event()
        self._ttl_s = ttl_s
        self._waiter_s = waiter_s
        self._names = names or {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._checked_at: dict[str, float] = {}
        self._position = 1
        self._foreign_runs: Mapping[str, set[str]] = {}
        self.fence = 0
        # Addresses of nodes that could not be listed at the end: their slots are not released.
        self.keep: set[str] = set()
        # Creates the run that gets the leases at the end, if there was no error and no slot is kept.
        self.heir: Callable[[], str] | None = None
        # Keeps a place in the queue for the confirm run that may follow, for that long after the end.
        self.queue_s: float | None = None

    def __enter__(self) -> "LeaseKeeper":
        try:
            self.fence = self._acquire()
        except BaseException:
            self._store.queue.leave(self._run)
            raise
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, error: object = None, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(10)
        try:
            if self.heir is not None and error is None and not self.keep and not self._cancel.is_set():
                self._store.leases.hand_over(self._run, self.heir(), ttl_s=self._ttl_s)
        finally:
            queue_s = None if error is not None or self._cancel.is_set() else self.queue_s
            self._store.leases.release(self._run, keep=self.keep, queue_s=queue_s)

    def _acquire(self) -> int:
        deadline = time.monotonic() + self._wait_s
        reported = ""
        while True:
            fence, why = self.try_once()
            if fence is not None:
                return fence
            if why != reported:
                self._report(why)
                reported = why
            if time.monotonic() >= deadline:
                raise InfraError(
                    timeout_message(self._wait_s, why), hint="`tipcflow nodes` shows which runs hold them"
                )
            # Runs far back in the queue poll less often, because each poll locks the queue.
            if self._cancel.wait(POLL_EVERY_S * min(self._position, SLOWEST)):
                raise InfraError("stopped while waiting for slots")

    def try_once(self, *, queue: bool = True) -> tuple[int | None, str]:
        """Request the slots once; return (the fence or None, the reason for waiting).

        Expired leases on empty nodes are dropped, and their slots requested immediately.

        Args:
            queue: stay in the queue if the slots are not available now.
        """
        place = self._place()
        if place.held and not place.ahead and self._freed(place.held):
            place = self._place()
        if place.free:
            if unknown := self._unknown_runs():
                return None, unknown_runs_message(unknown, self._names)
            seen = 0 if self._claims is None else self._claims.fence
            fence = self._store.leases.acquire(
                self._run, self._slots, owner=self._owner, ttl_s=self._ttl_s, above=seen
            )
            if fence is not None:
                return fence, ""
            if self._claims is not None:
                self._claims.release()
            place = self._place()  # a request with higher rank arrived in between
        if not queue:
            self._store.queue.leave(self._run)
        triggers = triggers_of(self._store, runs_in_the_way(place))
        self._position = place.position
        return None, waiting(place, triggers, self._names)

    def _place(self) -> "Place":
        return self._store.queue.join(self._run, self._slots, owner=self._owner, ttl_s=self._waiter_s)

    def _freed(self, held: "Iterable[Lease]") -> bool:
        """Drop expired leases of nodes that were listed and have nothing of that run; return whether there were
        any."""
        now, dropped = self._store.now(), 0
        expired: dict[tuple[str, str], list[Lease]] = defaultdict(list)
        for lease in held:
            if not lease.live(now):
                expired[lease.node, lease.run].append(lease)
        for (node, run), leases in expired.items():
            if self._may_check(f"{node} {run}") and self._empty(node, run):
                dropped += self._store.leases.drop_expired(leases)
        return bool(dropped)

    def _unknown_runs(self) -> Mapping[str, set[str]]:
        """Return node -> runs that are running there without a lease in this database; if none, the nodes are
        claimed."""
        if self._claims is None or (self._foreign_runs and not self._may_check("claims")):
            return self._foreign_runs
        self._foreign_runs = self._claims.take()
        self._checked_at["claims"] = time.monotonic()
        return self._foreign_runs

    def _may_check(self, what: str) -> bool:
        """Whether the last check is old enough to repeat it."""
        now = time.monotonic()
        if now - self._checked_at.get(what, -CHECK_EVERY_S) < CHECK_EVERY_S:
            return False
        self._checked_at[what] = now
        return True

    def _renew(self) -> None:
        while not self._stop.wait(self._ttl_s / 3):
            try:
                if self._store.leases.renew(self._run, ttl_s=self._ttl_s):
                    continue
                # The lease expired, after a suspend or a database outage: acquire it again if it is still free.
                again = self._store.leases.acquire(self._run, self._slots, owner=self._owner, ttl_s=self._ttl_s)
                if again is None:
                    self._report(
                        "the lease on the nodes' slots was lost to another run; the nodes still lock the slots"
                    )
            except DatabaseLostError:
                self._cancel.set()  # ends the jobs; the next use of the database reports the error
                return
            except Exception as error:  # a short database outage must not end the run
                self._report(f"the lease could not be renewed: {error}")


def timeout_message(wait_s: float, why: str) -> str:
    """Return the message for a run whose waiting time is over."""
    return f"no free slots within {limit(wait_s)}: {why}"
