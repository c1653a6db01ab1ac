"""Steps, their attempts, and legs: what was tried and how it ended."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Table, delete, func, insert, select, update

from tipcflow.domain import Attempt, ExitRecord, InfraError, Status
from tipcflow.store.base import StoreBase, upsert
from tipcflow.store.schema import STEP_WORDS, attempts, legs, steps


class StepsMixin(StoreBase):
    """Tables steps, attempts and legs."""

    def open_attempt(self, run_id: str, step_id: str, nodes: Sequence[str], started_at: float) -> int:
        """Open an attempt of a step on all of its nodes; return its number, from 1.

        Raises:
            KeyError: the run's plan has no such step.
            InfraError: an attempt of that step is open: another process runs it, or it must be closed first.
        """
        with self._write() as connection:
            step = select(steps.c.step).where(steps.c.run == run_id, steps.c.step == step_id)
            if not connection.execute(step.with_for_update()).first():
                raise KeyError(f"run {run_id} has no step {step_id}")
            mine = (attempts.c.run == run_id, attempts.c.step == step_id)
            unended = select(attempts.c.attempt).where(*mine, attempts.c.ended_at.is_(None))
            open_number = connection.execute(unended).scalar()
            if open_number is not None:
                raise InfraError(f"attempt {open_number} of step {step_id} of run {run_id} is still open")
            last = connection.execute(select(func.max(attempts.c.attempt)).where(*mine)).scalar() or 0
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

    def close_attempt(
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
        _check_word(status)
        mine = (attempts.c.run == run_id, attempts.c.step == step_id, attempts.c.attempt == attempt)
        with self._write() as connection:
            ended = update(attempts).where(*mine, attempts.c.ended_at.is_(None))
            values = {
                "status": status,
                "reason": reason,
                "records": [record.model_dump() for record in records],
                "ended_at": ended_at,
            }
            if connection.execute(ended.values(**values)).rowcount:
                return True
            if not connection.execute(select(attempts.c.attempt).where(*mine)).first():
                raise KeyError(f"run {run_id} has no attempt {attempt} of step {step_id}")
        return False

    def attempts(self, run_id: str) -> list[Attempt]:
        """All attempts of a run, in the plan's order of steps, oldest first."""
        query = (
            select(attempts)
            .join(steps, (steps.c.run == attempts.c.run) & (steps.c.step == attempts.c.step))
            .where(attempts.c.run == run_id)
            .order_by(steps.c.position, attempts.c.attempt)
        )
        with self._read() as connection:
            return [Attempt.model_validate(dict(row)) for row in connection.execute(query).mappings()]

    def set_step(self, run_id: str, step_id: str, status: Status, reason: str = "") -> None:
        """Set the status of a step.

        Raises:
            KeyError: when the run's plan has no such step.
            ValueError: the status is not valid for steps.
        """
        _check_word(status)
        mine = update(steps).where(steps.c.run == run_id, steps.c.step == step_id)
        with self._write() as connection:
            if not connection.execute(mine.values(status=status, reason=reason)).rowcount:
                raise KeyError(f"run {run_id} has no step {step_id}")

    def clear_steps(self, run_id: str, step_ids: Sequence[str]) -> None:
        """Remove the statuses of steps and their legs, because they or their dependencies are attempted again.

        A leg that this attempt does not reach must not show an earlier result.
        """
        mine = update(steps).where(steps.c.run == run_id, steps.c.step.in_(step_ids))
        own = delete(legs).where(legs.c.run == run_id, legs.c.step.in_(step_ids))
        with self._write() as connection:
            connection.execute(mine.values(status=None, reason=""))
            connection.execute(own)

    def set_leg(
        self,
        run_id: str,
        step_id: str,
        leg_id: str,
        attempt: int,
        status: Status,
        reason: str = "",
        record: ExitRecord | None = None,
    ) -> None:
        """Set the status of a leg in an attempt of its step (0 if it was not started), replacing an earlier one.

        Raises:
            KeyError: when the run's plan has no such step.
            ValueError: the status is not valid for legs.
        """
        _check_word(status)
        row: dict[str, Any] = {
            "run": run_id,
            "step": step_id,
            "leg": leg_id,
            "attempt": attempt,
            "node": record.node if record else "",
            "status": status,
            "reason": reason,
            "end_reason": record.reason if record else "",
            "exit_code": record.exit_code if record else None,
            "duration_s": record.duration_s if record else None,
            "record": record.model_dump() if record else None,
        }
        with self._write() as connection:
            step = select(steps.c.step).where(steps.c.run == run_id, steps.c.step == step_id)
            if not connection.execute(step).first():
                raise KeyError(f"run {run_id} has no step {step_id}")
            connection.execute(upsert(connection, legs), row)

    def step_statuses(self, run_id: str) -> dict[str, tuple[Status, str]]:
        """Step id -> (status, reason) of those steps that have a status, in the plan's order."""
        query = select(steps.c.step, steps.c.status, steps.c.reason)
        query = query.where(steps.c.run == run_id, steps.c.status.is_not(None)).order_by(steps.c.position)
        with self._read() as connection:
            return {step: (Status(status), reason) for step, status, reason in connection.execute(query)}

    def leg_statuses(self, run_id: str) -> dict[str, tuple[Status, str]]:
        """Return step id + '/' + leg id -> (status, reason) in the last attempt with a status of the leg."""
        return {key: (Status(row["status"]), row["reason"]) for key, row in self._last_legs(run_id).items()}

    def leg_records(self, run_id: str) -> list[ExitRecord]:
        """Return exit records of the legs, of the last attempt with a status of the leg."""
        rows = self._last_legs(run_id).values()
        return [ExitRecord.model_validate(row["record"]) for row in rows if row["record"] is not None]

    def _last_legs(self, run_id: str) -> dict[str, dict[str, Any]]:
        query = _of_run(legs, run_id)
        with self._read() as connection:
            rows = connection.execute(query).mappings()
            # later attempts overwrite earlier ones
            return {f"{row['step']}/{row['leg']}": dict(row) for row in rows}


def _of_run(table: Table, run_id: str) -> Any:
    query = select(table).join(steps, (steps.c.run == table.c.run) & (steps.c.step == table.c.step))
    return query.where(table.c.run == run_id).order_by(steps.c.position, table.c.attempt, table.c.leg)


def _check_word(status: Status) -> None:
    if status not in STEP_WORDS:
        raise ValueError(f"{status} is not a status of steps or legs")
