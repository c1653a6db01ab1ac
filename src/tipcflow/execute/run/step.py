"""A step of a run, driven by one or several processes together.

The processes are coordinated only by the database and the nodes, so any of them may die, start late or run twice.
The first process opens the attempt; for a gang it also stages all members and sends `go` to all at once, so that a
gang needs no more worker slots than one. Each process then watches its own nodes: `tipcflow run` all nodes of the
step, an Airflow task one. A process whose part failed ends the others; the process that finds all parts ended
closes the attempt.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tipcflow.domain import InfraError, JobSpec, MemberState, Status, Step, StoppedBy
from tipcflow.execute.attempt.decisions import is_cancelled, latest_end
from tipcflow.execute.attempt.drive import ABSENT, QUERY_S, AttemptDriver
from tipcflow.execute.failure import outcome
from tipcflow.execute.failure.root_cause import is_failed, was_stopped
from tipcflow.execute.job.evidence import gather
from tipcflow.execute.job.member import WATCH_S, Member
from tipcflow.execute.node.nodes import Nodes
from tipcflow.execute.progress import Event, Kind
from tipcflow.execute.run.context import TaskContext

if TYPE_CHECKING:
    from tipcflow.store.run.members import JoinedAttempt

# How long the process of a later node leaves the staging of a gang to the process of the first node.
TAKEOVER_S = 15.0
# After one member of a gang succeeded the others follow within seconds; a slower one has a task that watches it.
PEERS_END_S = 15.0


class StepTask:
    """The part of some nodes in a step. Call `run`; or `begin`, then `watch` until it returns True, then `end`.

    Args:
        own: nodes whose jobs this process watches: all nodes of the step, or the node of an Airflow task.
        nodes: sessions of all nodes of the step.
        resume: leg -> log bytes that another process has shown already, for a process with one node of its own.
        deferred: the attempt at the time of the deferral; a later attempt has another job.
        generation, cleared: the round of tasks that this task belongs to (`MemberState.of_round`): within one
            round an ended attempt counts as ended. Generation 0 always starts a new attempt.
        cancel: set when a user stopped the step: nothing starts from then on, and running jobs are stopped.
    """

    def __init__(
        self,
        context: TaskContext,
        step: Step,
        own: Sequence[str],
        nodes: Nodes,
        *,
        resume: dict[str, int] | None = None,
        generation: int = 0,
        cleared: int = -1,
        deferred: int = 0,
        cancel: threading.Event | None = None,
    ) -> None:
        self._deferred = deferred
        self._context = context
        self._step = step
        self._own = tuple(own)
        self._nodes = nodes
        self._resume = resume
        self._cancel = cancel or threading.Event()
        self._generation = generation
        self._cleared = cleared
        self._attempt = 0
        self._closed: tuple[Status, str] | None = None
        self._beyond = 0
        self._latest_end = float("inf")
        self._driver = AttemptDriver({}, (), _States(context, step, 0), together=False, cancel=self._cancel)

    @property
    def own_member(self) -> Member:
        """The member of the first own node."""
        return self._driver.own[0]

    @property
    def attempt(self) -> int:
        """The number of the attempt, after `begin`."""
        return self._attempt

    @property
    def specs(self) -> list[JobSpec]:
        """The jobs of all members."""
        return [member.spec for member in self._driver.members]

    @property
    def must_end_by(self) -> float:
        """When all parts must have ended by the deadlines that their runners enforce, by the database's clock."""
        return self._latest_end

    def run(self) -> tuple[Status, str]:
        """Run the step with its retries, in a process that watches all of its nodes."""
        while True:
            self.begin(WATCH_S)
            self.watch(float("inf"))
            ended = self.end()
            if not self.try_again():
                return ended

    def begin(self, seconds: float = 0.0) -> None:
        """Join the step's open attempt or open a new one, and make sure that the own nodes' jobs run.

        A running job is found again, an ended one is taken as ended; nothing is started twice. If the attempt
        cannot start, it is closed.

        Args:
            seconds: duration of the following call of `watch`: its first output is included.

        Raises:
            InfraError: the job of an own node could not be started, and other processes run independent jobs.
        """
        context, step = self._context, self._step
        joined = self._join()
        self._attempt, self._closed = joined.attempt, joined.closed
        if self._deferred not in (0, joined.attempt):
            self._resume = None
        self._drive(joined.attempt, self._own)
        if joined.opened:
            if joined.attempt > 1:
                before = context.members(step, joined.attempt - 1, self._nodes)
                context.closer.fetch_late(step, joined.attempt - 1, list(before.values()), self._nodes)
            context.forget(step)
            context.report(Event(Kind.STEP_STARTED, step=step.id, node=",".join(step.nodes)))
        if self._resume is not None and not self.own_member.done:
            self.own_member.resume_at(self._resume)
        if self._over or self._resume is not None:
            return
        if not joined.opened and self._was_stopped():
            self.begin(seconds)
            return
        if all(member.released for member in self._driver.own):
            return  # the jobs run; if a node is unreachable, `watch` reports it
        try:
            self._start(seconds)
        except InfraError as error:
            if not step.is_gang and len(self._own) < len(step.nodes):
                raise
            self._closed = self._close(trouble=error)

    def try_again(self) -> bool:
        """After `end`: whether the step is retried; this object then is the part of the next attempt."""
        if self._cancel.is_set() or not self._context.closer.again(self._step, self._attempt):
            return False
        self._beyond, self._resume, self._closed = self._attempt, None, None
        return True

    def watch(self, seconds: float) -> bool:
        """Watch the own nodes' jobs for at most `seconds`; return whether they have ended."""
        return self._closed is not None or self._driver.watch(seconds)

    def await_peers(self, seconds: float) -> bool:
        """Query the other nodes' jobs too, because their tasks may be waiting or dead; return whether all have
        ended.

        Independent nodes are not awaited, because their own tasks watch them.
        """
        if self._closed is not None or (not self._step.is_gang and not self._beyond):
            return True
        return self._driver.await_peers(seconds)

    def end(self) -> tuple[Status, str]:
        """Store how the own parts ended, end the other parts if one failed, close the attempt if all have ended.

        Returns:
            (status, reason): of the whole step if this call closed it, else of the first own part.
        """
        if self._closed is not None:
            return self._closed
        if self._step.is_gang and any(map(is_failed, self._driver.own)):
            self._driver.end_peers()
        else:
            self.await_peers(PEERS_END_S)
        self._driver.refresh()
        if not self._driver.running:
            return self._close()
        member = self.own_member
        if member.record is None:
            return Status.INFRA_FAILURE, member.lost
        status, reason = outcome.status_of(member.record)
        if status is Status.FAILED and member.record.is_collateral:
            reason = f"{reason}; collateral failure after a peer failed"
        return status, reason

    def kill(self) -> None:
        """Start nothing from now on."""
        self._cancel.set()

    def stop(self, reason: str) -> None:
        """Request the end of all members' jobs, and start none from now on; does not wait."""
        self._cancel.set()
        self._nodes.stop(self.specs, reason, StoppedBy.USER)

    def settle(self, *, stopped: bool = True) -> tuple[Status, str] | None:
        """Close the step's open attempt, whichever process opened it: running jobs are stopped, ended ones are
        taken as ended.

        Args:
            stopped: whether a user stopped the run, so that a step that never started is `cancelled`.
        Returns None if no attempt is open: another process has closed it in the meantime.
        """
        number = self._context.store.attempts.open_number(self._context.run_id, self._step.id)
        if number is None:
            return None
        self._attempt = number
        self._drive(number, ())
        left = self._driver.running
        for member in left:
            member.poll(absent=ABSENT)
        never = [member for member in left if member.done and member.record is None]
        by = StoppedBy.USER if stopped else StoppedBy.CONTROLLER
        self._driver.stop_and_await(self._driver.running, "its controller has ended", by)
        ended = [member for member in self._driver.members if member not in never]
        fine = all(not is_failed(member) or was_stopped(member) for member in ended)
        return self._close(cancelled=bool(never) and stopped and fine, final=True)

    def _join(self) -> "JoinedAttempt":
        """Join the open attempt, the one that ended in this round, or a new one even if that attempt is
        retried."""
        while True:
            joined = self._context.store.members.join(
                self._context.run_id,
                self._step.id,
                self._step.nodes,
                node=self._own[0],
                generation=self._generation,
                cleared=self._cleared,
                beyond=self._beyond,
            )
            if joined.closed is None or not self._context.closer.again(self._step, joined.attempt):
                return joined
            self._beyond = joined.attempt

    def _drive(self, attempt: int, own: Sequence[str]) -> None:
        """Take over the members of an attempt, with their stored states."""
        context, step = self._context, self._step
        members = context.members(step, attempt, self._nodes)
        began = context.began(step, attempt)
        self._latest_end = latest_end(members[step.nodes[0]].spec, context.now() if began is None else began)
        self._driver = AttemptDriver(
            members,
            own,
            _States(context, step, attempt),
            together=step.is_gang or len(step.nodes) == 1,
            cancel=self._cancel,
            gather=self._gather,
            is_late=lambda: context.now() > self._latest_end,
            generation=self._generation,
            cleared=self._cleared,
        )

    @property
    def _over(self) -> bool:
        return self._closed is not None or all(member.done for member in self._driver.own)

    def _start(self, seconds: float) -> None:
        if not self._step.is_gang:
            # Any process may retry for all nodes: the tasks of the others may have ended with the first attempt.
            self._driver.start(self._driver.members if self._beyond else self._driver.own, seconds)
            return
        first = self._step.nodes[0]
        if first not in self._own:
            self._wait_for_first()
        if not all(member.released for member in self._driver.members):
            self._driver.start_gang(seconds)

    def _wait_for_first(self) -> None:
        """Leave the staging to the process of the first node, if that starts soon."""
        deadline = time.monotonic() + TAKEOVER_S
        while time.monotonic() < deadline:
            self._driver.refresh()
            if any(member.released or member.done for member in self._driver.members):
                return
            time.sleep(QUERY_S)

    def _was_stopped(self) -> bool:
        """Whether the open attempt was stopped with an earlier attempt of this task; it is closed then."""
        self.own_member.poll()
        if not was_stopped(self.own_member):
            self.own_member.lost = ""  # watching the job gives a more precise reason
            return False
        self.settle()
        return True

    def _gather(self) -> None:
        """Collect evidence from all nodes of the attempt."""
        folder = self._context.closer.folder(self._step, self._attempt)
        for node, why in gather(self._driver.members, folder).items():
            self._context.report(Event(Kind.NOTE, f"no evidence from node {node}: {why}", step=self._step.id))

    def _close(
        self, *, cancelled: bool = False, final: bool = False, trouble: InfraError | None = None
    ) -> tuple[Status, str]:
        members = self._driver.members
        return self._context.closer.close(
            self._step,
            self._attempt,
            members,
            self._nodes,
            cancelled=is_cancelled(members, requested=cancelled or self._cancel.is_set()),
            trouble=trouble,
            late=self._context.cut_short(self._step, self._attempt) if any(map(is_failed, members)) else "",
            final=final or self._cancel.is_set(),
        )


class _States:
    """The states of an attempt's members in the database."""

    def __init__(self, context: TaskContext, step: Step, attempt: int) -> None:
        self._store = context.store
        self._key = context.run_id, step.id, attempt

    def read(self) -> Mapping[str, MemberState]:
        """Return node -> stored state."""
        return self._store.members.of(*self._key)

    def write(self, state: MemberState) -> MemberState:
        """Store a state; return the stored one."""
        return self._store.members.put(*self._key, state)
