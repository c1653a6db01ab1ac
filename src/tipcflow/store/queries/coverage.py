"""What chains have: accepted runs, and legs that ran, passed or did not run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, func, select

from tipcflow.domain import Status
from tipcflow.store.base import Part, among
from tipcflow.store.queries.states import GREEN, Line, environments, is_state
from tipcflow.store.schema import legs, runs

_STATUS = {status.value: status for status in Status}


@dataclass(frozen=True)
class LegCount:
    """Legs of a run with the same status; of those that did not run also with the same reason."""

    run: str
    status: Status
    reason: str
    count: int


class CoverageQueries(Part):
    """Read-only queries; their cost depends on the number of lines (states.py)."""

    def accepted(self, lines: Iterable[Line], enough: int) -> dict[str, tuple[bool, bool]]:
        """Return run of a line -> (whether the line ever passed, whether it has enough accepted runs)."""
        with self._read() as connection:
            counts = connection.execute(_accepted(connection, list(lines), max(enough, 1)))
            return {run: (number > 0, number >= enough) for run, number in counts}

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


def _accepted(connection: Connection, lines: Sequence[Line], most: int) -> Select[Any]:
    """Select (run, number of accepted runs of its line, at most `most`) of lines."""
    newest, own = runs.alias("newest"), runs.alias("own")
    accepted = (
        select(own.c.id)
        .where(own.c.chain == newest.c.chain, own.c.mode == newest.c.mode)
        .where(own.c.environment == environments(lines, newest), own.c.status.in_(GREEN), *is_state(own))
        .limit(most)
        .correlate(newest)
        .subquery()
    )
    count = select(func.count()).select_from(accepted).scalar_subquery()
    return select(newest.c.id, count).where(among(connection, newest.c.id, [line.run for line in lines]))
