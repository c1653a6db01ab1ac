"""Members of attempts: several processes run one attempt of a step together."""

import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, func, insert, select, update

from tipcflow.domain import Frozen, MemberState, Status
from tipcflow.store.base import StoreBase, clock, upsert
from tipcflow.store.schema import attempts, members, steps


class Joined(Frozen):
    """An open attempt that a process joined.

    Attributes:
        attempt: its number.
        opened: whether this call opened it.
        closed: its (status, reason) if it has ended in the caller's own round of tasks.
        members: node -> stored state of its part, for nodes with a state.
    """

    attempt: int
    opened: bool = False
    closed: tuple[Status, str] | None = None
    members: dict[str, MemberState] = {}


class MembersMixin(StoreBase):
    """Table members, and attempts that several processes share."""

    def join_attempt(
        self,
        run_id: str,
        step_id: str,
        nodes: Sequence[str],
        now: float | None = None,
        *,
        node: str = "",
        generation: int = 0,
        cleared: int = -1,
        beyond: int = 0,
    ) -> Joined:
        """Join the open attempt of a step, or open a new one, in one transaction.

        Args:
            node, generation, cleared: the caller and its round of tasks (`MemberState.of_round`). If the last
                attempt has ended in that round, the caller is late or repeated: it gets that attempt, and none is
                opened.
            beyond: attempts up to this number are not joined, because the step is retried.

        Raises:
            KeyError: the run's plan has no such step.
        """
        mine = (attempts.c.run == run_id, attempts.c.step == step_id)
        with self._write() as connection:
            now = clock(connection) if now is None else now
            step = select(steps.c.step).where(steps.c.run == run_id, steps.c.step == step_id)
            if not connection.execute(step.with_for_update()).first():
                raise KeyError(f"run {run_id} has no step {step_id}")
            open_one = select(attempts.c.attempt).where(*mine, attempts.c.ended_at.is_(None))
            number = connection.execute(open_one).scalar()
            if number is not None:
                known = _members(run_id, step_id, number)
                rows = connection.execute(known).scalars()
                states = {state.node: state for state in map(MemberState.model_validate, rows)}
                return Joined(attempt=number, members=states)
            last = connection.execute(select(func.max(attempts.c.attempt)).where(*mine)).scalar() or 0
            if generation and last > beyond:
                rows = connection.execute(_members(run_id, step_id, last)).scalars()
                states = {state.node: state for state in map(MemberState.model_validate, rows)}
                said = select(attempts.c.status, attempts.c.reason).where(*mine, attempts.c.attempt == last)
                status, reason = connection.execute(said).one()
                # A task that runs again after a stop wants the job to run.
                stopped = status == Status.CANCELLED
                if node in states and states[node].of_round(generation, cleared) and not stopped:
                    self._mark(connection, run_id, step_id, last, states[node], generation)
                    return Joined(attempt=last, members=states, closed=(Status(status), reason))
            row = {"run": run_id, "step": step_id, "attempt": last + 1, "nodes": list(nodes)}
            row |= {"reason": "", "records": [], "started_at": now}
            connection.execute(insert(attempts), row)
        return Joined(attempt=last + 1, opened=True)

    @staticmethod
    def _mark(
        connection: Connection, run_id: str, step_id: str, attempt: int, state: MemberState, generation: int
    ) -> None:
        """Record that the node's own task has read the result: a later clear of other tasks does not affect it."""
        if not state.generation:
            of = (members.c.run == run_id, members.c.step == step_id, members.c.attempt == attempt)
            own = state.model_copy(update={"generation": generation})
            connection.execute(update(members).where(*of, members.c.node == state.node).values(state=own))

    def is_under_way(self, run_id: str, step_id: str, *, node: str, generation: int, cleared: int = -1) -> bool:
        """Whether an attempt of a step is open, or has ended in the caller's own round of tasks."""
        mine = (attempts.c.run == run_id, attempts.c.step == step_id)
        query = select(attempts.c.attempt, attempts.c.ended_at, attempts.c.status).where(*mine)
        with self._read() as connection:
            last = connection.execute(query.order_by(attempts.c.attempt.desc()).limit(1)).first()
        if last is None:
            return False
        if last.ended_at is None:
            return True
        known = self.members(run_id, step_id, last.attempt).get(node)
        return known is not None and known.of_round(generation, cleared) and last.status != Status.CANCELLED

    def open_attempt_number(self, run_id: str, step_id: str) -> int | None:
        """Return the number of the step's open attempt, None without one."""
        query = select(attempts.c.attempt).where(
            attempts.c.run == run_id, attempts.c.step == step_id, attempts.c.ended_at.is_(None)
        )
        with self._read() as connection:
            return connection.execute(query).scalar()

    def put_member(self, run_id: str, step_id: str, attempt: int, state: MemberState) -> MemberState:
        """Store the state of a node's part. The first state of an ended part is final.

        Returns:
            The stored state.

        Raises:
            sqlalchemy.exc.IntegrityError: when there is no such attempt.
        """
        key = {"run": run_id, "step": step_id, "attempt": attempt, "node": state.node}
        own = _members(run_id, step_id, attempt).where(members.c.node == state.node)
        with self._write() as connection:
            # Changes of members of an attempt are serialised by a lock on its row.
            mine = (attempts.c.run == run_id, attempts.c.step == step_id, attempts.c.attempt == attempt)
            connection.execute(select(attempts.c.attempt).where(*mine).with_for_update())
            before = connection.execute(own).scalar()
            if before is not None and (kept := MemberState.model_validate(before)).ended:
                if state.generation and not kept.generation:
                    self._mark(connection, run_id, step_id, attempt, kept, state.generation)
                return kept
            row = {**key, "state": state, "ended": state.ended, "updated_at": time.time()}
            connection.execute(upsert(connection, members), row)
        return state

    def members(self, run_id: str, step_id: str, attempt: int) -> dict[str, MemberState]:
        """Return node -> stored state of its part of an attempt, for nodes with a state."""
        with self._read() as connection:
            rows = connection.execute(_members(run_id, step_id, attempt)).scalars()
            states = [MemberState.model_validate(row) for row in rows]
        return {state.node: state for state in states}


def _members(run_id: str, step_id: str, attempt: int) -> Select[tuple[Any]]:
    of = (members.c.run == run_id, members.c.step == step_id, members.c.attempt == attempt)
    return select(members.c.state).where(*of).order_by(members.c.node)
