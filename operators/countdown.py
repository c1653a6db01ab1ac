"""How long a trigger still waits: by the database's clock, which tasks and triggerer share."""

import asyncio
import logging
import time

# How often the clock is asked; in between the monotonic clock of this machine counts.
ASK_EVERY_S = 60.0
# A database that does not answer within this time is asked again later.
ASK_S = 30.0
_LOG = logging.getLogger(__name__)


class Countdown:
    """Time until a moment, whatever the clock of the triggerer's machine says and whoever sets it meanwhile.

    Args:
        until: the moment by the database's clock, seconds since the epoch.
    """

    def __init__(self, until: float) -> None:
        self._until = until
        self._ends: float | None = None
        self._ask_at = time.monotonic()

    async def left_s(self) -> float:
        """Seconds until then, negative afterwards.

        While the database does not answer, what it said before counts, or this machine's clock when it never has.
        """
        if time.monotonic() >= self._ask_at:
            self._ask_at = time.monotonic() + ASK_EVERY_S
            try:
                now = await asyncio.wait_for(asyncio.to_thread(_now), ASK_S)
            except Exception as error:
                _LOG.warning("the database's clock cannot be read: %r", error)
            else:
                self._ends = time.monotonic() + self._until - now
        return self._until - time.time() if self._ends is None else self._ends - time.monotonic()

    async def over(self) -> bool:
        """Whether the moment has come."""
        return await self.left_s() <= 0


def _now() -> float:
    from tipcflow.store import Store

    with Store.open_in_task(wait_s=0) as store:
        return store.now()
