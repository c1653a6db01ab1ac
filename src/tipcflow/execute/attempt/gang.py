"""The gang: all members start together or none does, stop together, and leave exit records.

A step on one node is a gang of one. States: staging (all members start and wait at the barrier) -> running
(`go` on every node) -> after the first failure the peers get a grace period to end by themselves, which shows the
failing rank, then `stop` -> ended, when every member has an exit record or is lost.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tipcflow.domain import InfraError, StoppedBy
from tipcflow.execute.failure.root_cause import is_bad, is_culprit
from tipcflow.execute.job.member import Member

# Peers of a crashed Paddle worker abort within 2-3 s (the launcher polls every few seconds), later on a loaded
# node. A member that is still silent after this grace period is the one that its peers were waiting for.
PEER_GRACE_S = 8.0
# Added to the job's own deadlines, which the runner enforces: after that the node counts as unresponsive.
SLACK_S = 60.0
# From `stop` to an exit record: TERM, the runner's kill_after_s, KILL, and the transfer of the record.
STOP_S = 30.0


class Gang:
    """Runs the members of one attempt of one step.

    Args:
        together: whether one failure ends the other members; independent nodes continue.
        look: collects evidence from all nodes before any node is stopped for a hang.
    """

    def __init__(
        self,
        members: Sequence[Member],
        cancel: threading.Event,
        *,
        together: bool = True,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._members = list(members)
        self._cancel = cancel
        self._together = together
        self._look = look
        self._looked = False
        self._changed = threading.Condition()

    def run(self) -> None:
        """Run to the end. Afterwards every member has either `record` or `lost`.

        Raises:
            InfraError: a member could not be staged; the others were stopped and no training started.
        """
        try:
            self._stage()
            self._release()
            self._wait()
        finally:
            self._stop_all("the controller stopped after an error", StoppedBy.CONTROLLER)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _stage(self) -> None:
        """Start every member, all or none."""
        with ThreadPoolExecutor(len(self._members)) as pool:
            futures = [pool.submit(member.start, self._wake) for member in self._members]
            errors = [future.exception() for future in futures]
        failed = next((error for error in errors if error is not None), None)
        if failed is not None:
            self._stop_all("a peer could not be staged", StoppedBy.PEER)
            raise failed
        deadline = time.monotonic() + self._members[0].spec.barrier_s
        for member in self._members:
            while not member.staged.wait(0.05):
                if self._cancel.is_set():
                    return
                if time.monotonic() > deadline:
                    self._stop_all(f"node {member.name} was not staged in time", StoppedBy.PEER)
                    raise InfraError(
                        f"node {member.name} was not ready within {member.spec.barrier_s:.0f} s", node=member.name
                    )

    def _release(self) -> None:
        """Send `go` to all nodes at once, unless a member has ended already."""
        barred = [member for member in self._members if member.spec.barrier]
        if not barred or self._cancel.is_set() or any(member.done for member in self._members):
            return
        together = threading.Barrier(len(barred))

        def go(member: Member) -> None:
            together.wait(10)
            member.session.go(member.spec)

        with ThreadPoolExecutor(len(barred)) as pool:
            futures = [pool.submit(go, member) for member in barred]
            error = next((f.exception() for f in futures if f.exception() is not None), None)
        if error is not None:
            self._stop_all("a peer did not receive `go`", StoppedBy.PEER)
            raise error

    def _wait(self) -> None:
        spec = self._members[0].spec
        deadline = time.monotonic() + spec.barrier_s + spec.deadline_s + SLACK_S
        trouble_since = 0.0
        while not all(member.done for member in self._members):
            if self._cancel.is_set():
                self._stop_all("cancelled", StoppedBy.USER)
                return
            now = time.monotonic()
            if now > deadline:
                self._look_once()
                self._stop_all("no exit record in time", StoppedBy.CONTROLLER)
                return
            if any(member.hangs for member in self._members):
                self._look_once()
            if self._together and any(is_bad(member) for member in self._members):
                trouble_since = trouble_since or now
                if self._culprit_known():
                    self._stop_all("a peer failed", StoppedBy.PEER)
                    return
                if now - trouble_since > PEER_GRACE_S:
                    self._look_once()
                    self._stop_all("peers exited; this rank did not (likely hung)", StoppedBy.PEER)
                    return
            with self._changed:
                self._changed.wait(0.2)

    def _look_once(self) -> None:
        """Collect evidence once, while the processes are still running."""
        if not self._looked:
            self._looked = True
            self._look()

    def _culprit_known(self) -> bool:
        """Whether a member failed in a way that no peer can cause."""
        return any(is_culprit(member) for member in self._members)

    def _stop_all(self, reason: str, by: StoppedBy) -> None:
        """Stop every running member and wait until each has a record or is lost."""
        alive = [member for member in self._members if not member.done]
        if not alive:
            return

        def stop(member: Member) -> None:
            try:
                member.session.stop(member.spec, reason, by)
            except InfraError as error:
                member.lost = member.lost or f"node {member.name}: the stop request failed: {error}"

        with ThreadPoolExecutor(len(alive)) as pool:
            list(pool.map(stop, alive))
        deadline = time.monotonic() + STOP_S
        for member in alive:
            member.join(max(0.0, deadline - time.monotonic()))
            if not member.done:
                member.lost = f"node {member.name}: no exit record {STOP_S:.0f} s after the stop request"
