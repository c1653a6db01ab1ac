"""Attempts of steps: when each ran, on which nodes, and how it ended."""

from collections.abc import Collection, Sequence

from sqlalchemy import func, insert, select, update

from tipcflow.domain import Attempt, ExitRecord, InfraError, Status
from tipcflow.store.base import Part
from tipcflow.store.run.steps import check_word
from tipcflow.store.schema import attempts, steps

_AT_ONCE = 500


class Attempts(Part):
    """Table attempts."""

    def open(self, run_id: str, step_id: str, nodes: Sequence[str], started_at: float) -> int:
        """Open an attempt of a step on all of its nodes; return its number, from 1.

        Raises:
            KeyError: the run's plan has no such step.
            InfraError: an attempt of that step is open: another process runs it, or it must be closed first.
        """
        with self._write() as connection:
            step = select(steps.c.step).where(steps.c.run == run_id, steps.c.step == step_id)
            if not connection.execute(step.with_for_update()).first():
                raise KeyError(f"run {run_id} has no step {step_id}")
            conditions = (attempts.c.run == run_id, attempts.c.step == step_id)
            unended = select(attempts.c.attempt).where(*conditions, attempts.c.ended_at.is_(None))
            open_number = connection.execute(unended).scalar()
            if open_number is not None:
                raise InfraError(f"attempt {open_number} of step {step_id} of run {run_id} is still open")
            last = connection.execute(select(func.max(attempts.c.attempt)).where(*conditions)).scalar() or 0
            row = {
                "run": run_id,
                "step": step_id,
                "attempt": last + 1,
                "nodes": list(nodes),
                "reason": "",
                "records": [],
                "started_at": started_at,
            }
            connection.execute(insert(attempts), row)
        return int(last) + 1

    def close(
        self,
        run_id: str,
        step_id: str,
        attempt: int,
        status: Status,
        reason: str,
        records: Sequence[ExitRecord],
        ended_at: float,
    ) -> bool:
        """Close an attempt. Returns False, without a change, if it was closed before by another process.

        Raises:
            KeyError: no such attempt.
            ValueError: the status is not valid for steps.
        """
        check_word(status)
        conditions = (attempts.c.run == run_id, attempts.c.step == step_id, attempts.c.attempt == attempt)
        with self._write() as connection:
            ended = update(attempts).where(*conditions, attempts.c.ended_at.is_(None))
            values = {
                "status": status,
                "reason": reason,
                "records": [record.model_dump() for record in records],
                "ended_at": ended_at,
            }
            if connection.execute(ended.values(**values)).rowcount:
                return True
            if not connection.execute(select(attempts.c.attempt).where(*conditions)).first():
                raise KeyError(f"run {run_id} has no attempt {attempt} of step {step_id}")
        return False

    def of(self, run_id: str) -> list[Attempt]:
        """All attempts of a run, in the plan's order of steps, oldest first."""
        query = (
            select(attempts)
            .join(steps, (steps.c.run == attempts.c.run) & (steps.c.step == attempts.c.step))
            .where(attempts.c.run == run_id)
            .order_by(steps.c.position, attempts.c.attempt)
        )
        with self._read() as connection:
            return [Attempt.model_validate(dict(row)) for row in connection.execute(query).mappings()]

    def took_s(self, run_id: str) -> float:
        """Return the seconds from the start of a run's first step to the end of its last one; 0 without an
        ended step."""
        rows = self.of(run_id)
        ends = [row.ended_at for row in rows if row.ended_at is not None]
        return max(ends) - min(row.started_at for row in rows) if ends else 0.0

    def took(self, run_ids: Collection[str]) -> dict[str, float]:
        """Return `took_s` of each of these runs that has an ended step."""
        wanted = sorted(run_ids)
        times = (func.min(attempts.c.started_at), func.max(attempts.c.ended_at))
        took: dict[str, float] = {}
        with self._read() as connection:
            for start in range(0, len(wanted), _AT_ONCE):
                query = select(attempts.c.run, *times).where(attempts.c.run.in_(wanted[start : start + _AT_ONCE]))
                rows = connection.execute(query.group_by(attempts.c.run))
                took |= {run: end - begin for run, begin, end in rows if end is not None}
        return took

    def open_number(self, run_id: str, step_id: str) -> int | None:
        """Return the number of the step's open attempt, None without one."""
        query = select(attempts.c.attempt).where(
            attempts.c.run == run_id, attempts.c.step == step_id, attempts.c.ended_at.is_(None)
        )
        with self._read() as connection:
            return connection.execute(query).scalar()
