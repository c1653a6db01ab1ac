"""What chains have: accepted runs, and legs that ran, passed or did not run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from tipcflow.domain import Status
from tipcflow.store.base import Part
from tipcflow.store.queries.states import GREEN, Line, is_state, newest_of_lines
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
        newest = newest_of_lines().subquery()
        line, own = runs.alias("line"), runs.alias("own_run")
        accepted = (
            select(own.c.id)
            .where(own.c.chain == line.c.chain, own.c.mode == line.c.mode)
            .where(own.c.environment == line.c.environment, own.c.status.in_(GREEN), *is_state(own))
            .limit(max(enough, 1))
            .correlate(line)
            .subquery()
        )
        count = select(func.count()).select_from(accepted).scalar_subquery()
        query = select(line.c.chain, line.c.mode, line.c.environment, count).select_from(
            newest.join(line, line.c.id == newest.c.id)
        )
        with self._read() as connection:
            known = {
                (chain, mode, environment): (number > 0, number >= enough)
                for chain, mode, environment, number in connection.execute(query)
            }
        missing = (False, False)
        return {line.run: known.get((line.chain, line.mode, line.environment), missing) for line in lines}

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
