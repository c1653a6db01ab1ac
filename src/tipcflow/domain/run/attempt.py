"""One attempt of a step, as stored."""

from tipcflow.domain.base import Frozen
from tipcflow.domain.run.exit_record import ExitRecord
from tipcflow.domain.status import Status


class Attempt(Frozen):
    """One attempt of a step on all of its nodes. `status` and `ended_at` are None while it is running.

    `records` holds the exit record of each node's job. Times are seconds since the epoch by the
    controller's clock.
    """

    run: str
    step: str
    attempt: int
    nodes: tuple[str, ...]
    status: Status | None = None
    reason: str = ""
    records: tuple[ExitRecord, ...] = ()
    started_at: float
    ended_at: float | None = None

    @property
    def duration_s(self) -> float | None:
        """Return the seconds from its start to its end; None before the end."""
        return None if self.ended_at is None else self.ended_at - self.started_at
