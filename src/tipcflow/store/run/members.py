"""Members of attempts: several processes run one attempt of a step together."""

import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, and_, func, insert, select, update

from tipcflow.domain import Frozen, MemberState, Status
from tipcflow.store.base import Part, clock, upsert
from tipcflow.store.schema import attempts, members, runs, steps


class JoinedAttempt(Frozen):
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


class LostMember(Frozen):
    """A node's part of an attempt that ended without an exit record, because the node was lost."""

    run: str
    step: str
    attempt: int
    node: str


class Members(Part):
    """Table members, and attempts that several processes share."""

    def join(
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
    ) -> JoinedAttempt:
        """Join the open attempt of a step, or open a new one, in one transaction.

        Args:
            node, generation, cleared: the caller and its round of tasks (`MemberState.of_round`). If the last
                attempt has ended in that round, the caller is late or repeated: it gets that attempt, and none is
                opened.
            beyond: attempts up to this number are not joined, because the step is retried.

        Raises:
            KeyError: the run's plan has no such step.
        """
        conditions = (attempts.c.run == run_id, attempts.c.step == step_id)
        with self._write() as connection:
            now = clock(connection) if now is None else now
            step = select(steps.c.step).where(steps.c.run == run_id, steps.c.step == step_id)
            if not connection.execute(step.with_for_update()).first():
                raise KeyError(f"run {run_id} has no step {step_id}")
            open_one = select(attempts.c.attempt).where(*conditions, attempts.c.ended_at.is_(None))
            number = connection.execute(open_one).scalar()
            if number is not None:
                member_query = _members(run_id, step_id, number)
                rows = connection.execute(member_query).scalars()
                states = {state.node: state for state in map(MemberState.model_validate, rows)}
                return JoinedAttempt(attempt=number, members=states)
            last = connection.execute(select(func.max(attempts.c.attempt)).where(*conditions)).scalar() or 0
            if generation and last > beyond:
                rows = connection.execute(_members(run_id, step_id, last)).scalars()
                states = {state.node: state for state in map(MemberState.model_validate, rows)}
                status_query = select(attempts.c.status, attempts.c.reason).where(
                    *conditions, attempts.c.attempt == last
                )
                status, reason = connection.execute(status_query).one()
                # A task that runs again after a stop wants the job to run.
                stopped = status == Status.CANCELLED
                if node in states and states[node].of_round(generation, cleared) and not stopped:
                    self._mark(connection, run_id, step_id, last, states[node], generation)
                    return JoinedAttempt(attempt=last, members=states, closed=(Status(status), reason))
            row = {"run": run_id, "step": step_id, "attempt": last + 1, "nodes": list(nodes)}
            row |= {"reason": "", "records": [], "started_at": now}
            connection.execute(insert(attempts), row)
        return JoinedAttempt(attempt=last + 1, opened=True)

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
        conditions = (attempts.c.run == run_id, attempts.c.step == step_id)
        query = select(attempts.c.attempt, attempts.c.ended_at, attempts.c.status).where(*conditions)
        with self._read() as connection:
            last = connection.execute(query.order_by(attempts.c.attempt.desc()).limit(1)).first()
        if last is None:
            return False
        if last.ended_at is None:
            return True
        known = self.of(run_id, step_id, last.attempt).get(node)
        return known is not None and known.of_round(generation, cleared) and last.status != Status.CANCELLED

    def put(self, run_id: str, step_id: str, attempt: int, state: MemberState) -> MemberState:
        """Store the state of a node's part. The first state of an ended part is final.

        Returns:
            The stored state.

        Raises:
            sqlalchemy.exc.IntegrityError: when there is no such attempt.
        """
        key = {"run": run_id, "step": step_id, "attempt": attempt, "node": state.node}
        own = _members(run_id, step_id, attempt).where(members.c.node == state.node)
        with self._write() as connection:
            # Changes of members of an attempt are serialized by a lock on its row.
            conditions = (attempts.c.run == run_id, attempts.c.step == step_id, attempts.c.attempt == attempt)
            connection.execute(select(attempts.c.attempt).where(*conditions).with_for_update())
            before = connection.execute(own).scalar()
            if before is not None and (stored := MemberState.model_validate(before)).ended:
                if state.generation and not stored.generation:
                    self._mark(connection, run_id, step_id, attempt, stored, state.generation)
                return stored
            row = {**key, "state": state, "ended": state.ended, "updated_at": time.time()}
            connection.execute(upsert(connection, members), row)
        return state

    def of(self, run_id: str, step_id: str, attempt: int) -> dict[str, MemberState]:
        """Return node -> stored state of its part of an attempt, for nodes with a state."""
        with self._read() as connection:
            rows = connection.execute(_members(run_id, step_id, attempt)).scalars()
            states = [MemberState.model_validate(row) for row in rows]
        return {state.node: state for state in states}

    def lost(self, since: float) -> list[LostMember]:
        """Return the lost members of runs that ended after `since`, seconds since the epoch; oldest run first.

        Only attempts that are an `infra_failure` count: a user does not wait for the logs of a cancelled one.
        """
        at = members.c.run, members.c.step, members.c.attempt, members.c.node
        same = (members.c.run == attempts.c.run, members.c.step == attempts.c.step)
        query = (
            select(*at, members.c.state)
            .join(attempts, and_(*same, members.c.attempt == attempts.c.attempt))
            .join(runs, runs.c.id == members.c.run)
            .where(runs.c.status.is_not(None), runs.c.ended_at >= since)
            .where(attempts.c.status == Status.INFRA_FAILURE, members.c.ended)
            .order_by(runs.c.ended_at, *at)
        )
        with self._read() as connection:
            rows = [(row[:4], MemberState.model_validate(row.state)) for row in connection.execute(query)]
        keys = [key for key, state in rows if state.record is None and state.lost]
        return [LostMember(run=run, step=step, attempt=attempt, node=node) for run, step, attempt, node in keys]


def _members(run_id: str, step_id: str, attempt: int) -> Select[tuple[Any]]:
    of = (members.c.run == run_id, members.c.step == step_id, members.c.attempt == attempt)
    return select(members.c.state).where(*of).order_by(members.c.node)
