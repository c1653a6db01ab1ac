"""What chains have: accepted runs, and legs that ran, passed or did not run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, select

from tipcflow.domain import Status
from tipcflow.store.base import Part
from tipcflow.store.queries.states import GREEN, Line, environments, is_state
from tipcflow.store.schema import legs, runs

_AT_ONCE = 500


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
        lines = list(lines)
        known: dict[str, tuple[bool, bool]] = {}
        with self._read() as connection:
            for start in range(0, len(lines), _AT_ONCE):
                query = _accepted(lines[start : start + _AT_ONCE], max(enough, 1))
                known |= {run: (number > 0, number >= enough) for run, number in connection.execute(query)}
        return known

    def legs(self, run_ids: Sequence[str]) -> list[LegCount]:
        """Return the legs of runs in their last attempt, counted."""
        counts: list[LegCount] = []
        later = legs.alias("later")
        same = [later.c[name] == legs.c[name] for name in ("run", "step", "leg")]
        is_last = ~select(later.c.leg).where(*same, later.c.attempt > legs.c.attempt).exists()
        reason = func.substr(legs.c.reason, 1, 200)
        with self._read() as connection:
            for start in range(0, len(run_ids), _AT_ONCE):
                query = (
                    select(legs.c.run, legs.c.status, reason, func.count())
                    .where(legs.c.run.in_(run_ids[start : start + _AT_ONCE]), is_last)
                    .group_by(legs.c.run, legs.c.status, reason)
                )
                counts += [
                    LegCount(run, Status(status), why if status == Status.NOT_RUN else "", int(count))
                    for run, status, why, count in connection.execute(query)
                ]
        return counts


def _accepted(lines: Sequence[Line], most: int) -> Select[Any]:
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
    return select(newest.c.id, count).where(newest.c.id.in_([line.run for line in lines]))
