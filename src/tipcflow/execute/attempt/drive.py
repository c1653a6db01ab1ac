"""The jobs of one attempt: started together, watched, stopped together; each leaves an exit record or is lost.

Several processes may drive one attempt. Each watches its own members (`tipcflow run` all of them, an Airflow task
that of its node) and knows the others by the states that their processes have stored. Every process takes the same
decisions (`attempt.decisions`), and every request to a node may be repeated.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from tipcflow.domain import InfraError, MemberState, StoppedBy
from tipcflow.domain.numbers.units import limit
from tipcflow.execute.attempt.decisions import STOP_S, Decision, decide
from tipcflow.execute.attempt.servers import ServerEnds
from tipcflow.execute.failure.classify import class_of_error
from tipcflow.execute.failure.outcome import reason_of, unstarted_class
from tipcflow.execute.failure.root_cause import is_failed, was_stopped
from tipcflow.execute.job.member import WATCH_S, Member

# Interval of decisions while members are watched, and of queries about members that this process does not watch.
TICK_S = 0.2
QUERY_S = 0.3
PEERS_EVERY_S = 1.0
# Interval of queries whether the peers of a silent node make progress, while one of them does not respond.
SETTLE_EVERY_S = 2.0
ABSENT = "job not started on this node"
UNSTAGED = "a peer could not be staged"


class Shared(Protocol):
    """The states of an attempt's members that all processes share."""

    def read(self) -> Mapping[str, MemberState]:
        """Return node -> stored state."""
        ...

    def write(self, state: MemberState) -> MemberState:
        """Store a state; return the stored one, because the first state of an ended member is final."""
        ...


class AttemptDriver:
    """Drives one attempt of one step.

    Args:
        members: node -> member.
        own: nodes whose members this process watches.
        together: whether one failure ends the other members (a gang); independent nodes continue.
        cancel: set when a user stopped the step: nothing starts from then on, and running members are stopped.
        gather: collects evidence from all nodes.
        is_late: returns whether the members are running after all their deadlines.
        generation, cleared: the round of tasks of this process (`MemberState.of_round`).
    """

    def __init__(
        self,
        members: Mapping[str, Member],
        own: Collection[str],
        shared: Shared,
        *,
        together: bool,
        cancel: threading.Event,
        gather: Callable[[], None] = lambda: None,
        is_late: Callable[[], bool] = lambda: False,
        generation: int = 0,
        cleared: int = -1,
    ) -> None:
        self._members = dict(members)
        self._own = frozenset(own)
        self._shared = shared
        self._together = together
        self._cancel = cancel
        self._gather = gather
        self._is_late = is_late
        self._generation = generation
        self._cleared = cleared
        self._followers: dict[str, threading.Thread] = {}
        self._changed = threading.Event()
        self._gathered = False
        self._trouble_since = 0.0
        self._settled_at = 0.0
        self._server_ends = ServerEnds()
        for member in self.own:
            member.wake = self._changed.set

    @property
    def members(self) -> list[Member]:
        """All members, in the step's order."""
        return list(self._members.values())

    @property
    def own(self) -> list[Member]:
        """The members that this process watches."""
        return [member for member in self.members if member.name in self._own]

    @property
    def running(self) -> list[Member]:
        """The members that have neither an exit record nor are lost."""
        return [member for member in self.members if not member.done]

    def start_gang(self, seconds: float) -> None:
        """All or none: start every member, then let all run their first command at once.

        Args:
            seconds: duration of the following `watch`; its first output is included in the start.

        Raises:
            InfraError: a member could not be staged; the others were stopped, and no training started.
        """
        waiting = self.running
        try:
            self._start(waiting, seconds)
            if (refused := _refused(self.members)) is not None:
                raise InfraError(reason_of(refused), node=refused.name, failure_class=unstarted_class(refused))
            self._check_cancelled()
            _at_once(waiting, lambda member: member.session.go(member.spec))
        except InfraError as error:
            self.refresh()
            if any(member.released for member in self.members):
                return  # another process has started the gang; its result counts
            self._end_staged(error)
            raise
        self._release(waiting)

    def start(self, members: Sequence[Member], seconds: float) -> None:
        """Start independent members.

        Raises:
            InfraError: one of them could not be started. If this process watches all members, the others were
                stopped; otherwise they belong to other processes.
        """
        waiting = [member for member in members if not member.done and not member.released]
        try:
            self._start(waiting, seconds)
        except InfraError as error:
            if len(self.own) == len(self.members):
                self._end_staged(error)
            raise
        self._release(waiting)

    def watch(self, seconds: float) -> bool:
        """Watch the own members for at most `seconds`; return whether all of them have ended, and store that."""
        until = time.monotonic() + seconds
        self._follow(until)
        while any(not member.done for member in self.own):
            left = until - time.monotonic()
            if left <= 0:
                for thread in self._followers.values():
                    thread.join()  # from here on the log offsets are final
                break
            self._pause(min(TICK_S, left))
            self._act()
        if any(not member.done for member in self.own):
            return False
        for member in self.own:
            self.keep(member)
        return True

    def end_peers(self) -> None:
        """After a failure of a gang's member: drive the others to their end."""
        while self.running:
            self.refresh()
            if self._act().stop:
                return
            self._pause(QUERY_S)

    def await_peers(self, seconds: float) -> bool:
        """Query the other nodes' jobs, because their tasks may be waiting or dead; return whether all have ended.

        After a failure of an own member of a gang nothing is awaited: `end_peers` handles the others.
        """
        deadline = time.monotonic() + seconds
        while not (self._together and any(map(is_failed, self.own))):
            self.refresh()
            for member in self.running:
                member.poll(patient=True)
                if member.done:
                    self.keep(member)
            if not self.running or self._act().stop:
                return True
            if time.monotonic() > deadline:
                return False
            self._pause(PEERS_EVERY_S)
        return True

    def stop_and_await(self, members: Sequence[Member], reason: str, by: StoppedBy) -> None:
        """Stop members and wait until each has an exit record or is lost."""
        if not members:
            return

        def stop(member: Member) -> None:
            """Send the stop request; a node that does not receive it is lost."""
            try:
                member.session.stop(member.spec, reason, by)
            except InfraError as error:
                if not member.done:
                    member.down_since = member.down_since or time.time()
                    member.lose(f"node {member.name}: the stop request failed: {error}", error)

        _at_once(members, stop)
        deadline = time.monotonic() + STOP_S
        while (left := [member for member in members if not member.done]) and time.monotonic() < deadline:
            for member in left:
                if not self._is_followed(member):
                    member.poll()
            if any(not member.done for member in left):
                self._pause(QUERY_S)
        for member in members:
            if not member.done:
                member.lost = f"node {member.name}: no exit record {limit(STOP_S)} after the stop request"
            self.keep(member)

    def refresh(self) -> None:
        """Update the members from the states that other processes have stored."""
        if all(member.done for member in self.members) or len(self.own) == len(self.members):
            return
        for name, state in self._shared.read().items():
            member = self._members[name]
            if member.done:
                continue
            if name not in self._own or state.ended:
                member.restore(state)

    def keep(self, member: Member) -> None:
        """Store a member's state for the other processes, or take over its stored end."""
        if member.name in self._own:
            member.generation = self._generation
        member.cleared = self._cleared
        member.restore(self._shared.write(member.state))

    def _act(self) -> Decision:
        self._settle_silence()
        self._server_ends.act(self.members, self.own)
        now = time.monotonic()
        if any(map(is_failed, self.members)):
            self._trouble_since = self._trouble_since or now
        decision = decide(
            self.members,
            together=self._together,
            cancelled=self._cancel.is_set(),
            late=self._is_late(),
            trouble_s=now - self._trouble_since if self._trouble_since else 0.0,
        )
        if decision.gather and not self._gathered:
            self._gathered = True
            self._gather()
        if decision.stop:
            self.stop_and_await(self.running, decision.stop, decision.by)
        return decision

    def _settle_silence(self) -> None:
        """Find out whether a silent member hangs; its node cannot, if its ranks never count iterations."""
        silent = [member for member in self.own if member.silent and not member.done]
        if not silent or time.monotonic() < self._settled_at + SETTLE_EVERY_S:
            return
        self._settled_at = time.monotonic()
        for member in silent:
            peers = [other.has_progress() for other in self.members if other is not member]
            if not any(peers) and None in peers:
                continue  # queried again; if the node stays away, it is lost
            try:
                member.settle_silence(active=any(peers))
            except InfraError:
                continue  # the process that watches the member reports the error

    def _start(self, members: Sequence[Member], seconds: float) -> None:
        """Start jobs concurrently, or find them running or ended; each waits for `go` if it is part of a gang."""
        self._check_cancelled()

        def start(member: Member) -> None:
            own = member.name in self._own
            response = member.begin(seconds) if own else member.session.start(member.spec)
            member.apply_refusal(response)
            self._await_staged(member, response)

        _at_once(members, start)

    def _await_staged(self, member: Member, response: Mapping[str, Any]) -> None:
        deadline = time.monotonic() + member.spec.barrier_s
        while self._together and response.get("state") == "staging" and not self._cancel.is_set():
            if time.monotonic() > deadline:
                raise InfraError(
                    f"node {member.name} was not ready within {limit(member.spec.barrier_s)}", node=member.name
                )
            time.sleep(QUERY_S)
            response = member.session.poll(member.spec)
            member.apply_refusal(response)

    def _end_staged(self, cause: InfraError) -> None:
        """Stop what was started of an attempt that cannot run.

        The node that could not start is stored first and with its reason, because a process that finds a stopped
        peer may close the attempt before this one.
        """
        for member in self.running:
            member.poll(absent=ABSENT)
            if member.lost and member.name == cause.node:
                member.lost, member.lost_class = cause.message, class_of_error(cause)
        for member in self.members:
            if member.done:
                self.keep(member)
        late = [member for member in self.running if member.name == cause.node]
        is_cancelled = self._cancel.is_set()
        self.stop_and_await(late, cause.message, StoppedBy.USER if is_cancelled else StoppedBy.STAGING)
        self.stop_and_await(self.running, UNSTAGED, StoppedBy.USER if is_cancelled else StoppedBy.PEER)
        for member in self.members:
            self.keep(member)

    def _release(self, members: Sequence[Member]) -> None:
        for member in members:
            member.released = True
            self.keep(member)

    def _check_cancelled(self) -> None:
        if self._cancel.is_set():
            raise InfraError("stopped before it started")

    def _follow(self, until: float) -> None:
        for member in self.own:
            if not member.done and not self._is_followed(member):
                thread = threading.Thread(
                    target=self._follow_one, args=(member, until), name=f"watch-{member.name}", daemon=True
                )
                self._followers[member.name] = thread
                thread.start()

    def _follow_one(self, member: Member, until: float) -> None:
        try:
            while not member.done and (left := until - time.monotonic()) > 0:
                member.follow(min(left, WATCH_S))
        except BaseException as error:  # if the thread died silently, the step would wait for its deadline
            member.lost = f"watching node {member.name} failed: {error!r}"
        finally:
            self._changed.set()

    def _is_followed(self, member: Member) -> bool:
        thread = self._followers.get(member.name)
        return thread is not None and thread.is_alive()

    def _pause(self, seconds: float) -> None:
        """Wait until a followed member changes, for at most `seconds`."""
        self._changed.wait(seconds)
        self._changed.clear()


def _at_once(members: Sequence[Member], do: Callable[[Member], object]) -> None:
    """Call a function for each member concurrently; raise the first error, in that order, when all are done."""
    if not members:
        return
    with ThreadPoolExecutor(len(members)) as pool:
        futures = [pool.submit(do, member) for member in members]
    for future in futures:
        future.result()


def _refused(members: Sequence[Member]) -> Member | None:
    """Return the member because of which a gang cannot start: one that a process stopped because of its peer only
    if there is no other."""
    ended = [member for member in members if member.done]
    return min(ended, key=_collateral, default=None)


def _collateral(member: Member) -> int:
    """Return how likely a member that did not start only ended because of another: 0 for one that failed."""
    if member.record is None or not was_stopped(member):
        return 0
    return 1 if member.record.stopped_by is StoppedBy.STAGING else 2
