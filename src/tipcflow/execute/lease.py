"""Leases on slots: all or none, renewed while the run lives, released at its end."""

import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tipcflow.domain import InfraError

if TYPE_CHECKING:
    from tipcflow.store import Store

TTL_S = 120.0
ASK_EVERY_S = 1.0


class LeaseKeeper:
    """Holds the leases of one run; use as a context manager.

    Args:
        empty: tells whether a node was listed and holds no process of a run; an expired lease is granted again
            only then.
        say: gets one line whenever what we wait for changes.
        ttl_s: how long the lease lives when nobody renews it, seconds.
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
        say: Callable[[str], None],
        cancel: threading.Event | None = None,
        ttl_s: float = TTL_S,
    ) -> None:
        self._store = store
        self._run = run
        self._slots = sorted(set(slots))
        self._owner = owner
        self._wait_s = wait_s
        self._empty = empty
        self._say = say
        self._cancel = cancel or threading.Event()
        self._ttl_s = ttl_s
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._runs = ""
        self.fence = 0
        # Addresses of nodes that could not be listed at the end: their slots are not given back.
        self.keep: set[str] = set()

    def __enter__(self) -> "LeaseKeeper":
        self.fence = self._acquire()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(10)
        self._store.release_leases(self._run, keep=self.keep)

    def _acquire(self) -> int:
        deadline = time.monotonic() + self._wait_s
        said = ""
        while True:
            fence, holders = self.try_once()
            if fence is not None:
                return fence
            if self._runs and self._runs != said:
                self._say(f"waiting: {holders}")
                said = self._runs
            if self._cancel.wait(ASK_EVERY_S):
                raise InfraError("stopped while waiting for slots")
            if time.monotonic() > deadline:
                raise InfraError(
                    f"no free slots within {self._wait_s:.0f} s: {holders}",
                    hint="see `tipcflow runs` for what holds them",
                )

    def try_once(self) -> tuple[int | None, str]:
        """Ask for the slots once; (the fence or None, who holds them in words).

        What has run out on nodes that are empty is freed, and asked for at once.
        """
        for last in (False, True):
            now = time.time()
            fence = self._store.acquire_leases(
                self._run, self._slots, owner=self._owner, ttl_s=self._ttl_s, now=now
            )
            if fence is not None:
                return fence, ""
            holders, self._runs = self._holders(now)
            if last or holders:
                return None, holders
        raise AssertionError("the loop returns")

    def _holders(self, now: float) -> tuple[str, str]:
        """Who holds what we want, in words and as run ids.

        Frees expired leases of nodes that were listed and found empty of that run.
        """
        lines, runs = [], set()
        for lease in self._store.leases():
            if (lease.node, lease.slot) not in self._slots or lease.run == self._run:
                continue
            if not lease.live(now) and self._empty(lease.node, lease.run):
                self._store.drop_expired(lease, now)
                continue
            lines.append(lease.describe(now))
            runs.add(lease.run)
        return "; ".join(sorted(lines)), ",".join(sorted(runs))

    def _renew(self) -> None:
        while not self._stop.wait(self._ttl_s / 3):
            try:
                now = time.time()
                if self._store.renew_leases(self._run, ttl_s=self._ttl_s, now=now):
                    continue
                # It ran out, after a suspend or while the database was away: take it again if it is still free.
                again = self._store.acquire_leases(
                    self._run, self._slots, owner=self._owner, ttl_s=self._ttl_s, now=now
                )
                if again is None:
                    self._say("the lease on the nodes' slots was lost to another run; the nodes keep the slots")
            except Exception as error:  # a database that is away for a moment must not end the run
                self._say(f"the lease could not be renewed: {error}")
