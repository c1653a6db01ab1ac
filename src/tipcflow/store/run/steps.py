"""Statuses of steps and legs."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Table, delete, select, update

from tipcflow.domain import ExitRecord, LegKey, Status
from tipcflow.store.base import Part, upsert
from tipcflow.store.schema import STEP_WORDS, legs, steps


class Steps(Part):
    """Tables steps and legs."""

    def set(self, run_id: str, step_id: str, status: Status, reason: str = "") -> None:
        """Set the status of a step.

        Raises:
            KeyError: when the run's plan has no such step.
            ValueError: the status is not valid for steps.
        """
        check_word(status)
        statement = update(steps).where(steps.c.run == run_id, steps.c.step == step_id)
        with self._write() as connection:
            if not connection.execute(statement.values(status=status, reason=reason)).rowcount:
                raise KeyError(f"run {run_id} has no step {step_id}")

    def clear(self, run_id: str, step_ids: Sequence[str]) -> None:
        """Remove the statuses of steps and their legs, because they or their dependencies are attempted again.

        A leg that this attempt does not reach must not show an earlier result.
        """
        statement = update(steps).where(steps.c.run == run_id, steps.c.step.in_(step_ids))
        own = delete(legs).where(legs.c.run == run_id, legs.c.step.in_(step_ids))
        with self._write() as connection:
            connection.execute(statement.values(status=None, reason=""))
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
        check_word(status)
        row = leg_row(run_id, LegKey(step_id, leg_id), attempt, status, reason, record)
        with self._write() as connection:
            step = select(steps.c.step).where(steps.c.run == run_id, steps.c.step == step_id)
            if not connection.execute(step).first():
                raise KeyError(f"run {run_id} has no step {step_id}")
            connection.execute(upsert(connection, legs), row)

    def statuses(self, run_id: str) -> dict[str, tuple[Status, str]]:
        """Step id -> (status, reason) of those steps that have a status, in the plan's order."""
        query = select(steps.c.step, steps.c.status, steps.c.reason)
        query = query.where(steps.c.run == run_id, steps.c.status.is_not(None)).order_by(steps.c.position)
        with self._read() as connection:
            return {step: (Status(status), reason) for step, status, reason in connection.execute(query)}

    def leg_statuses(self, run_id: str) -> dict[LegKey, tuple[Status, str]]:
        """Return leg -> (status, reason) in the last attempt with a status of the leg."""
        return {key: (Status(row["status"]), row["reason"]) for key, row in self.last_legs(run_id).items()}

    def leg_records(self, run_id: str) -> list[ExitRecord]:
        """Return exit records of the legs, of the last attempt with a status of the leg."""
        rows = self.last_legs(run_id).values()
        return [ExitRecord.model_validate(row["record"]) for row in rows if row["record"] is not None]

    def last_legs(self, run_id: str) -> dict[LegKey, dict[str, Any]]:
        """Return leg -> row of the last attempt with a status of the leg."""
        query = _of_run(legs, run_id)
        with self._read() as connection:
            rows = connection.execute(query).mappings()
            # later attempts overwrite earlier ones
            return {LegKey(row["step"], row["leg"]): dict(row) for row in rows}


def _of_run(table: Table, run_id: str) -> Any:
    query = select(table).join(steps, (steps.c.run == table.c.run) & (steps.c.step == table.c.step))
    return query.where(table.c.run == run_id).order_by(steps.c.position, table.c.attempt, table.c.leg)


def check_word(status: Status) -> None:
    """Check that a status is valid for steps and legs.

    Raises:
        ValueError: it is not.
    """
    if status not in STEP_WORDS:
        raise ValueError(f"{status} is not a status of steps or legs")


def leg_row(
    run_id: str, key: LegKey, attempt: int, status: Status, reason: str = "", record: ExitRecord | None = None
) -> dict[str, Any]:
    """Return the row of a leg's status in an attempt."""
    return {
        "run": run_id,
        "step": key.step,
        "leg": key.leg,
        "attempt": attempt,
        "node": record.node if record else "",
        "status": status,
        "reason": reason,
        "end_reason": record.reason if record else "",
        "exit_code": record.exit_code if record else None,
        "duration_s": record.duration_s if record else None,
        "record": record.model_dump() if record else None,
    }
