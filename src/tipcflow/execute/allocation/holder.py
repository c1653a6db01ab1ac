"""The controller of a run on Slurm: recorded while it runs, as a lease is, because Slurm's runs have no leases."""

import contextlib
import threading
from typing import TYPE_CHECKING

from tipcflow.execute.allocation.document import HolderDocument

if TYPE_CHECKING:
    from tipcflow.store import Store

# Lifetime of the record without renewal, seconds: that of a lease.
TTL_S = 120.0


class Holder:
    """Keeps the record of a run's controller while the context is open; a killed controller leaves one that ends.

    Args:
        owner: `user@host pid N`.
    """

    def __init__(self, store: "Store", run: str, owner: str) -> None:
        self._store, self._run, self._owner = store, run, owner
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="holder", daemon=True)

    def __enter__(self) -> "Holder":
        self._put()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def _renew(self) -> None:
        while not self._stop.wait(TTL_S / 3):
            # A short outage of the database must not end the run, and a long one is reported by the run itself.
            with contextlib.suppress(Exception):
                self._put()

    def _put(self) -> None:
        until = self._store.now() + TTL_S
        self._store.documents.put(self._run, HolderDocument(owner=self._owner, until=until))
