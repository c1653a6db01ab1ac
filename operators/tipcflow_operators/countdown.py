"""Remaining time of a trigger by the database's clock, which tasks and triggerer share."""

import asyncio
import logging
import time

# How often the database's clock is read; between reads the monotonic clock of this machine counts.
QUERY_EVERY_S = 60.0
# Timeout of one read; the next read comes later.
QUERY_S = 30.0
_LOG = logging.getLogger(__name__)


class Countdown:
    """Time until a deadline, independent of the wall clock of the triggerer's machine.

    Args:
        until: deadline by the database's clock, seconds since the epoch.
    """

    def __init__(self, until: float) -> None:
        self._until = until
        self._ends: float | None = None
        self._query_at = time.monotonic()

    async def left_s(self) -> float:
        """Return the seconds until the deadline, negative after it.

        While the database does not respond, the last reading counts, or this machine's clock before the first one.
        """
        if time.monotonic() >= self._query_at:
            self._query_at = time.monotonic() + QUERY_EVERY_S
            try:
                now = await asyncio.wait_for(asyncio.to_thread(_now), QUERY_S)
            except Exception as error:
                _LOG.warning("cannot read the database's clock: %r", error)
            else:
                self._ends = time.monotonic() + self._until - now
        return self._until - time.time() if self._ends is None else self._ends - time.monotonic()

    async def over(self) -> bool:
        """Whether the deadline has passed."""
        return await self.left_s() <= 0


def _now() -> float:
    from tipcflow.store.polls.pool import poll_store

    with poll_store() as store:
        return store.now()
