"""What chains have: legs that ran, passed or did not run."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import func, select

from tipcflow.domain import Status
from tipcflow.store.base import Part, among
from tipcflow.store.schema import legs

_STATUS = {status.value: status for status in Status}


class LegCount(NamedTuple):
    """Legs of a run with the same status; of those that did not run also with the same reason.

    A tuple, because the page of coverage creates thousands of them.
    """

    run: str
    status: Status
    reason: str
    number: int


class CoverageQueries(Part):
    """Read-only queries; their cost depends on the number of lines."""

    def legs(self, run_ids: Sequence[str]) -> list[LegCount]:
        """Return the legs of runs in their last attempt, counted."""
        later = legs.alias("later")
        same = [later.c[name] == legs.c[name] for name in ("run", "step", "leg")]
        is_last = ~select(later.c.leg).where(*same, later.c.attempt > legs.c.attempt).exists()
        reason = func.substr(legs.c.reason, 1, 200)
        query = select(legs.c.run, legs.c.status, reason, func.count()).where(is_last)
        query = query.group_by(legs.c.run, legs.c.status, reason)
        with self._read() as connection:
            counts = connection.execute(query.where(among(connection, legs.c.run, run_ids))).all()
        return [
            LegCount(run, _STATUS[status], why if status == Status.NOT_RUN else "", count)
            for run, status, why, count in counts
        ]
