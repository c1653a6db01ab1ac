"""One node's part of a step as its own task: the tasks of all nodes run one attempt together.

The tasks are coordinated only by the database and the nodes, so any of them may die, start late or run twice. The
first task opens the attempt; for a gang it also stages all members and sends `go` to all at once, so that a gang
needs no more worker slots than one. Each task then watches its own node; a task whose part failed ends the others;
the task that finds all parts ended closes the attempt.
"""

import threading
import time
from typing import TYPE_CHECKING

from tipcflow.domain import EndReason, InfraError, JobSpec, Status, Step, StoppedBy
from tipcflow.execute.attempt.gang import PEER_GRACE_S, SLACK_S, STOP_S
from tipcflow.execute.failure import outcome
from tipcflow.execute.failure.root_cause import by_a_user, culprit, is_bad, is_culprit, was_stopped
from tipcflow.execute.job.evidence import gather
from tipcflow.execute.job.member import Member
from tipcflow.execute.node.nodes import Nodes
from tipcflow.execute.progress import Event, Kind
from tipcflow.execute.run.context import TaskContext

if TYPE_CHECKING:
    from tipcflow.store.members import Joined

# How long the task of a later node leaves the staging of a gang to the task of the first node.
TAKEOVER_S = 15.0
LOOK_S = 0.3
# After one member of a gang succeeded the others follow within seconds; a slower one has a task that watches it.
PEERS_END_S = 15.0


class StepTask:
    """The part of `node` in a step. Call `begin`, then `watch` until it returns True, then `end`.

    Args:
        nodes: sessions of all nodes of the step.
        resume: leg -> log bytes that another process has shown already.
        deferred: the attempt at the time of the deferral; a later attempt has another job.
        generation, cleared: the round of tasks that this task belongs to (`MemberState.of_round`): within one
            round an ended attempt counts as ended. Generation 0 always starts a new attempt.
    """

    def __init__(
        self,
        context: TaskContext,
        step: Step,
        node: str,
        nodes: Nodes,
        *,
        resume: dict[str, int] | None = None,
        generation: int = 0,
        cleared: int = -1,
        deferred: int = 0,
    ) -> None:
        self._deferred = deferred
        self._context = context
        self._step = step
        self._node = node
        self._nodes = nodes
        self._resume = resume
        self._killed = threading.Event()
        self._generation = generation
        self._cleared = cleared
        self._attempt = 0
        self._closed: tuple[Status, str] | None = None
        self._beyond = 0
        self._members: dict[str, Member] = {}

    @property
    def mine(self) -> Member:
        """This node's member."""
        return self._members[self._node]

    @property
    def attempt(self) -> int:
        """The number of the attempt, after `begin`."""
        return self._attempt

    @property
    def specs(self) -> list[JobSpec]:
        """The jobs of all members."""
        return [member.spec for member in self._members.values()]

    def begin(self, seconds: float = 0.0) -> None:
        """Join the step's open attempt or open a new one, and make sure that this node's job runs.

        A running job is found again, an ended one is taken as ended; nothing is started twice.

        Args:
            seconds: duration of the following call of `watch`: its first output is included.

        Raises:
            InfraError: a node of the gang could not be staged; all others were stopped and the attempt is closed.
        """
        context, step = self._context, self._step
        joined = self._join()
        self._attempt, self._closed = joined.attempt, joined.closed
        if self._deferred not in (0, joined.attempt):
            self._resume = None
        self._members = context.members(step, self._attempt, self._nodes)
        if joined.opened:
            if joined.attempt > 1:
                before = context.members(step, joined.attempt - 1, self._nodes)
                context.closer.fetch_late(step, joined.attempt - 1, list(before.values()), self._nodes)
            context.forget(step)
            context.say(Event(Kind.STEP_STARTED, step=step.id, node=",".join(step.nodes)))
        if self._resume is not None and not self.mine.done:
            self.mine.resume_at(self._resume)
        if self._closed is not None or self.mine.done or self._resume is not None:
            return
        if not joined.opened and self._was_stopped():
            self.begin(seconds)
            return
        if self.mine.released:
            return  # the job runs; if its node is unreachable, `watch` reports it
        if step.is_gang:
            self._begin_gang()
        else:
            # Any task may retry for all nodes: the tasks of the others may have ended with the first attempt.
            for member in list(self._members.values()) if self._beyond else [self.mine]:
                if not member.done and not member.released:
                    self._check_killed()
                    answer = member.begin(seconds) if member is self.mine else self._start([member.spec])[0]
                    self._take_answers([member], [answer])
                    member.released = True
                    self._keep(member)

    def _join(self) -> "Joined":
        """Join the open attempt, the one that ended in this round, or a new one even if that attempt is
        retried."""
        while True:
            joined = self._context.store.join_attempt(
                self._context.run,
                self._step.id,
                self._step.nodes,
                node=self._node,
                generation=self._generation,
                cleared=self._cleared,
                beyond=self._beyond,
            )
            if joined.closed is None or not self._context.closer.again(self._step, joined.attempt):
                return joined
            self._beyond = joined.attempt

    def try_again(self) -> bool:
        """After `end`: whether the step is retried; this object then is the part of the next attempt."""
        if self._killed.is_set() or not self._context.closer.again(self._step, self._attempt):
            return False
        self._beyond, self._resume, self._closed = self._attempt, None, None
        return True

    def watch(self, seconds: float) -> bool:
        """Watch this node's job for at most `seconds`; return whether it has ended."""
        until = time.monotonic() + seconds
        while not self._over and (left := until - time.monotonic()) > 0:
            self.mine.follow(left)
            if not self.mine.done and self._context.now() > self.must_end_by:
                self._nodes.stop([self.mine.spec], "no exit record in time", StoppedBy.CONTROLLER)
                self._await([self.mine], STOP_S)
        return self._over

    @property
    def _over(self) -> bool:
        return self._closed is not None or self.mine.done

    def end(self) -> tuple[Status, str]:
        """Store how this node's part ended, end the other parts if it failed, close the attempt if all have ended.

        Returns:
            (status, reason): of the whole step if this call closed it, else of this node's part.
        """
        if self._closed is not None:
            return self._closed
        self._keep(self.mine)
        if self._step.is_gang and is_bad(self.mine):
            self._end_peers()
        else:
            self.await_peers(PEERS_END_S)
        self._look()
        if all(member.done for member in self._members.values()):
            return self._close()
        if self.mine.record is None:
            return Status.INFRA_FAILURE, self.mine.lost
        status, reason = outcome.status_of(self.mine.record)
        if status is Status.FAILED and self.mine.record.victim:
            reason = f"{reason}; collateral failure after a peer failed"
        return status, reason

    def kill(self) -> None:
        """Start nothing from now on."""
        self._killed.set()

    def stop(self, reason: str) -> None:
        """Request the end of all members' jobs, and start none from now on; does not wait."""
        self._killed.set()
        self._nodes.stop(self.specs, reason, StoppedBy.USER)

    def settle(self, *, stopped: bool = True) -> tuple[Status, str] | None:
        """Close the step's open attempt, whichever task opened it: running jobs are stopped, ended ones are taken
        as ended.

        Args:
            stopped: whether a user stopped the run, so that a step that never started is `cancelled`.
        Returns None if no attempt is open: another task has closed it in the meantime.
        """
        number = self._context.store.open_attempt_number(self._context.run, self._step.id)
        if number is None:
            return None
        self._attempt = number
        self._members = self._context.members(self._step, number, self._nodes)
        left = [member for member in self._members.values() if not member.done]
        for member in left:
            self._ask(member, absent="the job never started there")
        never = [member for member in left if member.done and member.record is None]
        by = StoppedBy.USER if stopped else StoppedBy.CONTROLLER
        self._stop_and_await([one for one in left if not one.done], "the run continues without it", by)
        ended = [member for member in self._members.values() if member not in never]
        fine = all(not is_bad(member) or was_stopped(member) for member in ended)
        return self._close(cancelled=bool(never) and stopped and fine, final=True)

    def _begin_gang(self) -> None:
        if self._node != self._step.nodes[0] and not self._members[self._step.nodes[0]].released:
            self._wait_for_first()
        if not all(member.released for member in self._members.values()):
            self._stage_all()

    def _wait_for_first(self) -> None:
        """Leave the staging to the task of the first node, if that starts soon."""
        deadline = time.monotonic() + TAKEOVER_S
        while time.monotonic() < deadline:
            self._look()
            if any(member.released or member.done for member in self._members.values()):
                return
            time.sleep(LOOK_S)

    def _stage_all(self) -> None:
        """All or none: start every member, then send `go` to all at once. Repeatable; nothing starts twice."""
        waiting = [member for member in self._members.values() if not member.done]
        try:
            self._take_answers(waiting, self._start([member.spec for member in waiting]))
            refused = next((member for member in self._members.values() if member.done), None)
            if refused is not None:
                raise InfraError(outcome.reason_of(refused), node=refused.name)
            self._check_killed()
            self._nodes.go([member.spec for member in waiting])
        except InfraError as error:
            if self._give_up(error):
                raise
            return
        for member in waiting:
            member.released = True
            self._keep(member)

    def _give_up(self, trouble: InfraError) -> bool:
        """Close the attempt that could not be staged; False if another task has started it, whose result then
        counts."""
        self._look()
        if any(member.released for member in self._members.values()):
            return False
        self._stop_and_await(
            [m for m in self._members.values() if not m.done], "a peer could not be staged", StoppedBy.PEER
        )
        for member in self._members.values():
            self._keep(member)
        members = list(self._members.values())
        self._context.closer.close(self._step, self._attempt, members, self._nodes, trouble=trouble, final=True)
        return True

    def _start(self, specs: list[JobSpec]) -> list[dict[str, object]]:
        self._check_killed()
        return self._nodes.start(specs)

    def _check_killed(self) -> None:
        if self._killed.is_set():
            raise InfraError("stopped from Airflow before it started")

    def _was_stopped(self) -> bool:
        """Whether the open attempt was stopped with an earlier attempt of this task; it is closed then."""
        self._ask(self.mine)
        if not was_stopped(self.mine):
            self.mine.lost = ""  # watching the job gives a more precise reason
            return False
        self.settle()
        return True

    def _end_peers(self) -> None:
        """After this node's part failed: wait until the other parts show the failing rank, then stop them."""
        deadline = time.monotonic() + PEER_GRACE_S
        while time.monotonic() < deadline:
            self._look()
            members = self._members.values()
            if all(member.done for member in members) or any(map(is_culprit, members)):
                break
            time.sleep(LOOK_S)
        alive = [member for member in self._members.values() if not member.done]
        known = any(map(is_culprit, self._members.values()))
        if alive and (not known or (self.mine.record and self.mine.record.reason is EndReason.HANG)):
            gather(list(self._members.values()), self._context.closer.folder(self._step, self._attempt))
        self._stop_and_await(
            alive, "a peer failed" if known else "peers exited; this rank did not (likely hung)", StoppedBy.PEER
        )

    def await_peers(self, seconds: float) -> bool:
        """Poll the other nodes' jobs too, because their tasks may be waiting or dead; return whether all have
        ended.

        A gang whose part on this node failed is not awaited, because `end` handles the other parts; neither are
        independent nodes, which their own tasks watch.
        """
        if not self._step.is_gang and not self._beyond:
            return True
        deadline = time.monotonic() + seconds
        while self._closed is None and not (self._step.is_gang and is_bad(self.mine)):
            self._look()
            left = [member for member in self._members.values() if not member.done]
            for member in left:
                self._ask(member, patient=True)
                if member.done:
                    self._keep(member)
            if all(member.done for member in left):
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(1.0)
        return True

    def _stop_and_await(self, members: list[Member], reason: str, by: StoppedBy) -> None:
        if not members:
            return
        for node, why in self._nodes.stop([member.spec for member in members], reason, by).items():
            self._members[node].lost = f"node {node}: the stop request failed: {why}"
        self._await([member for member in members if not member.done], STOP_S)
        for member in members:
            self._keep(member)

    def _await(self, members: list[Member], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for member in members:
            while not member.done and time.monotonic() < deadline:
                self._ask(member)
                time.sleep(0 if member.done else LOOK_S)
            if not member.done:
                member.lost = f"node {member.name}: no exit record {seconds:.0f} s after the stop request"

    def _ask(self, member: Member, *, absent: str = "", patient: bool = False) -> None:
        """Poll a job that no task watches. `patient`: an unresponsive node may come back."""
        try:
            answer = self._nodes[member.name].poll(member.spec)
        except InfraError as error:
            member.down_since = member.down_since or time.time()
            if not patient or time.time() - member.down_since > self._nodes.reconnect_s:
                member.lost = str(error)
            return
        member.down_since = 0.0
        member.take_answer(answer)
        if absent and answer.get("state") == "absent":
            member.lost = f"node {member.name}: {absent}"

    def _take_answers(self, members: list[Member], answers: list[dict[str, object]]) -> None:
        for member, answer in zip(members, answers, strict=True):
            record = answer.get("record")
            if isinstance(record, dict) and record.get("reason") == EndReason.REFUSED:
                member.take_answer(answer)

    def _look(self) -> None:
        """Update the members from the state that other tasks have stored."""
        if self.mine.done and len(self._members) == 1:
            return
        known = self._context.store.members(self._context.run, self._step.id, self._attempt)
        for name, state in known.items():
            member = self._members[name]
            if name != self._node or not member.done:
                member.restore(state)

    def _keep(self, member: Member) -> None:
        context = self._context
        if member.name == self._node:
            member.generation = self._generation
        member.cleared = self._cleared
        member.restore(context.store.put_member(context.run, self._step.id, self._attempt, member.state))

    @property
    def must_end_by(self) -> float:
        """When all parts must have ended by the deadlines that their runners enforce, by the database's clock."""
        spec = self.mine.spec
        began = next(
            one.started_at
            for one in self._context.store.attempts(self._context.run)
            if (one.step, one.attempt) == (self._step.id, self._attempt)
        )
        return began + spec.barrier_s + spec.deadline_s + SLACK_S

    def _close(self, *, cancelled: bool = False, final: bool = False) -> tuple[Status, str]:
        members = list(self._members.values())
        blamed = culprit(members)
        cancelled = cancelled or (blamed is not None and by_a_user(blamed))
        return self._context.closer.close(
            self._step,
            self._attempt,
            members,
            self._nodes,
            cancelled=cancelled,
            late=self._context.cut_short(self._step, self._attempt) if any(map(is_bad, members)) else "",
            final=final or self._killed.is_set(),
        )
