"""How long a job's runner has been stalled, from the events of consecutive watches."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Stalled(NamedTuple):
    """A runner that has stopped responding.

    Attributes:
        up: of its last heartbeat.
        still_s: for how many seconds it had been stalled.
    """

    up: float
    still_s: float


class Stillness:
    """Adds up `still_s` of the runner's `alive` events. Each watch counts from 0, and a watch may be shorter than
    the time that a runner may be stalled.

    Args:
        limit_s: maximum time without a heartbeat or CPU use of the runner.
    """

    def __init__(self, limit_s: float = float("inf")) -> None:
        self._limit_s = limit_s
        self._up: Any = None
        self._earlier_s = self._this_s = 0.0
        self._first = True

    def begin_watch(self) -> None:
        """Start a new watch: its first event has a `still_s` of 0, whatever the runner did before."""
        self._earlier_s, self._this_s, self._first = self._earlier_s + self._this_s, 0.0, True

    def beyond(self, event: Mapping[str, Any]) -> float:
        """Return for how many seconds the runner has been stalled, if that exceeds the limit; otherwise 0.

        Args:
            event: an `alive` event of the runner's watch.
        """
        still_s = float(event.get("still_s", 0.0))
        if event.get("up") != self._up or ((still_s < self._this_s or still_s == 0.0) and not self._first):
            self._earlier_s = 0.0  # it has written a heartbeat, or used its CPU
        self._up, self._this_s, self._first = event.get("up"), still_s, False
        total_s = self._earlier_s + still_s
        return total_s if total_s >= self._limit_s else 0.0
