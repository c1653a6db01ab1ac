"""One node's part of a running step: watched, re-attached after the connection breaks."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from tipcflow.domain import EndReason, ExitRecord, InfraError, JobSpec, MemberState, Node, StoppedBy
from tipcflow.domain.numbers.units import rough
from tipcflow.domain.run.failure import FailureClass
from tipcflow.domain.run.job_event import (
    JobEnd,
    JobEvent,
    JobFiles,
    JobGone,
    JobHang,
    JobLog,
    JobTrained,
    LegEnd,
    RunnerAlive,
    decode,
    exit_record,
)
from tipcflow.execute.job.exit_records import invalid_exit_message, is_leg_of
from tipcflow.execute.job.listening import progress_event
from tipcflow.execute.node.inline_files import NO_INLINE_FILES, unpack
from tipcflow.execute.progress import Event, Kind, Listener
from tipcflow.remote.stillness import Stalled, Stillness

WATCH_S = 60.0
RECONNECT_EVERY_S = 2.0
# Size of the stored end of a log, characters: enough for a traceback.
RECENT = 16 * 1024


class JobSession(Protocol):
    """What a member needs of its node (execute.node.session.NodeSession implements it)."""

    @property
    def node(self) -> Node:
        """The node of this session."""
        ...

    def begin(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        """Start the job or re-attach to it, and watch it: the runner's response is the first event."""
        ...

    def start(self, spec: JobSpec) -> dict[str, Any]:
        """Start the job, or find it running or ended; return the runner's response."""
        ...

    def go(self, spec: JobSpec) -> None:
        """Let a staged job start its first command."""
        ...

    def stop(self, spec: JobSpec, reason: str, by: StoppedBy) -> None:
        """Request the end of the job; `by` is the initiator."""
        ...

    def report_peers(self, spec: JobSpec, *, active: bool) -> None:
        """Report to the runner of a silent job whether its peers make progress."""
        ...

    def finish(self, spec: JobSpec) -> None:
        """Request the end of the job's parameter servers."""
        ...

    def poll(self, spec: JobSpec) -> dict[str, Any]:
        """Return state, heartbeat, exit record and legs of the job."""
        ...

    def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        """Yield the runner's events from the given log offsets until the job ends or `seconds` have passed."""
        ...

    def evidence(self, spec: JobSpec, seconds: float) -> dict[str, Any]:
        """Return the evidence of a job that may hang; the job continues."""
        ...

    def end_stuck(self, spec: JobSpec) -> None:
        """End the processes of a job whose runner is unresponsive, and the runner."""
        ...

    def reconnect(self) -> None:
        """Open a new connection to the same node."""
        ...


class Member:
    """A job on one node.

    Attributes:
        record: exit record of the job, once it has ended.
        legs: leg id -> exit record of that leg.
        artefacts: path relative to the suite's root -> size, for files written by the job.
        sent: small files of the job that were transferred with its end.
        lost: why the job can no longer be watched; '' while it can.
        lost_class: class of the failure because of which it could not start; None if it started or is unknown.
        lost_by: the other node whose failure ended the allocation of both; '' if none is known.
        damaged: whether it is lost because its record is not its runner's, so that nothing proves how it ended.
        recent: the end of its log.
        hangs: the runner's reason for a hang; '' without one.
        silent: the runner's reason for a silence that is a hang only if its peers are silent too; '' without one.
        trained: whether its trainers have succeeded, for a training with parameter servers, which are running.
        down_since, known_at: when the connection broke (0 while connected) and when the record arrived, seconds
            since the epoch.
        released: whether `go` was sent to the job or is not needed.
        wake: called when the job's state changes.
    """

    def __init__(
        self,
        session: JobSession,
        spec: JobSpec,
        *,
        listener: Listener,
        reconnect_s: float,
        silence_s: float = float("inf"),
    ) -> None:
        self.session = session
        self.spec = spec
        self.record: ExitRecord | None = None
        self.legs: dict[str, ExitRecord] = {}
        self.artefacts: dict[str, int] = {}
        self.sent = NO_INLINE_FILES
        self.lost = ""
        self.lost_class: FailureClass | None = None
        self.lost_by = ""
        self.damaged = False
        self.recent = ""
        self.hangs = self.silent = ""
        self.trained = False
        self._hang_number = 0
        self.down_since = 0.0
        self.known_at = 0.0
        self.released = False
        self.generation = 0
        self.cleared = -1
        self._resume: dict[str, int] = {}
        self._shown: dict[str, int] = {}
        self._listener = listener
        self._reconnect_s = reconnect_s
        self._stillness = Stillness(silence_s)
        self.wake: Callable[[], None] = lambda: None
        self._events: Iterator[dict[str, Any]] | None = None

    @property
    def name(self) -> str:
        """The node's name."""
        return self.session.node.name

    @property
    def log_bytes(self) -> dict[str, int]:
        """Leg ('' for a step's only command) -> number of log bytes received, by this or an earlier process."""
        return {leg: max(end, self._shown.get(leg, 0)) for leg, end in self._resume.items()}

    @property
    def done(self) -> bool:
        """Whether the member has ended or is lost."""
        return self.record is not None or bool(self.lost)

    def begin(self, seconds: float) -> dict[str, Any]:
        """Start the job on its node or find it; also receive what the next `follow` shows, for at most `seconds`.

        Returns:
            the runner's response.

        Raises:
            InfraError: the node is unreachable or refuses the job.
        """
        self._events = self.session.begin(self.spec, self._resume, seconds)
        return next(self._events)

    def follow(self, seconds: float) -> bool:
        """Watch for at most `seconds` or until the job has ended; return whether the member is done."""
        events, self._events = self._events, None
        self._stillness.begin_watch()
        try:
            for message in events or self.session.watch(self.spec, self._resume, seconds):
                self._take(message)
                if self.done:
                    break  # the last event: the end of the runner's own process is not awaited
        except InfraError as error:
            self._reattach(str(error))
        return self.done

    def apply_response(self, response: Mapping[str, Any]) -> None:
        """Process the runner's response to `start` or `poll`."""
        for payload in response.get("legs") or []:
            if (record := exit_record(payload)) is not None and is_leg_of(record, self.spec):
                self.legs[record.leg] = record
        self.trained = self.trained or bool((response.get("heartbeat") or {}).get("trained"))
        if response.get("record"):
            self._take({**response, "event": "end"})
        elif response.get("state") in ("lost", "absent"):
            self._take({"event": response["state"]})

    def apply_refusal(self, response: Mapping[str, Any]) -> None:
        """Process the response of a runner that refuses the job: on a full disk it is the only record.

        The record of a job that ended in another way follows with its logs.
        """
        record = response.get("record")
        if isinstance(record, dict) and record.get("reason") == EndReason.REFUSED:
            self._events = None
            self.apply_response(response)

    def poll(self, *, absent: str = "", patient: bool = False) -> None:
        """Query a job that is not watched.

        Args:
            absent: why the member is lost if its node has no such job; '' if that is expected.
            patient: whether an unresponsive node may come back.
        """
        try:
            response = self.session.poll(self.spec)
        except InfraError as error:
            self.down_since = self.down_since or time.time()
            if not patient or time.time() - self.down_since > self._reconnect_s:
                self.lose(str(error), error)
            return
        self.down_since = 0.0
        self.apply_response(response)
        if absent and response.get("state") == "absent":
            self.lost = f"node {self.name}: {absent}"

    @property
    def hang_number(self) -> int:
        """The number of the hang that `hangs` describes; 0 without one, or if its runner does not number hangs."""
        return self._hang_number if self.hangs else 0

    @property
    def state(self) -> MemberState:
        """Return the known state, for other processes that run the same attempt."""
        return MemberState(
            node=self.name,
            released=self.released,
            generation=self.generation,
            cleared=self.cleared,
            record=self.record,
            legs=self.legs,
            artefacts=self.artefacts,
            log_bytes=self.log_bytes,
            lost=self.lost,
            lost_class=self.lost_class,
            lost_by=self.lost_by,
            damaged=self.damaged,
            down_since=self.down_since,
            known_at=self.known_at,
        )

    def resume_at(self, log_bytes: Mapping[str, int]) -> None:
        """Continue after the log bytes that another process has shown. The end of these is received again, but not
        shown: it contains whether the member failed because of a peer."""
        for leg, seen in log_bytes.items():
            self._shown[leg] = max(seen, self._resume.get(leg, 0))
            self._resume[leg] = max(0, self._shown[leg] - RECENT)

    def restore(self, state: MemberState) -> None:
        """Take over the state known to another process."""
        self.released = state.released
        self.generation, self.cleared = state.generation, state.cleared
        self.record, self.lost, self.damaged = state.record, state.lost, state.damaged
        self.lost_class, self.lost_by = state.lost_class, state.lost_by
        self.legs, self.artefacts = dict(state.legs), dict(state.artefacts)
        self._resume = dict(state.log_bytes)
        self.down_since, self.known_at = state.down_since, state.known_at

    def _reattach(self, why: str) -> None:
        """Re-attach to the job after the connection broke; the job keeps running. Stops at the reconnect
        deadline."""
        self._note(f"node {self.name}: connection lost ({why}); the job is still running, reconnecting")
        self.down_since = self.down_since or time.time()
        deadline = time.monotonic() + self._reconnect_s
        # Not tenacity, which tries at least once: without time to reconnect, the first error is the reason.
        while time.monotonic() < deadline:
            try:
                self.session.reconnect()
                self._note(f"node {self.name}: reconnected")
                self.down_since = 0.0
                return
            except InfraError as error:
                why = str(error)
                self._set_lost_by(error)
                if error.failure_class is FailureClass.NODE_LOST:
                    break  # its allocation has ended
                time.sleep(RECONNECT_EVERY_S)
        self.lost = f"node {self.name} was lost: {why}"

    def lose(self, why: str, error: InfraError) -> None:
        """Set why the job can no longer be watched; `error` may say that another node ended the allocation."""
        self.lost = why
        self._set_lost_by(error)

    def _set_lost_by(self, error: InfraError) -> None:
        is_of_another = error.failure_class is FailureClass.NODE_LOST and error.node != self.name
        self.lost_by = error.node if is_of_another else ""

    def end_if_stalled(self, stalled: Stalled) -> None:
        """End a runner that another process reported as stalled, unless it has written a heartbeat since."""
        if self.done:
            return
        try:
            response = self.session.poll(self.spec)
        except InfraError:
            return  # the process that watches the member reports the error
        self.apply_response(response)
        beat = response.get("heartbeat")
        if not self.done and isinstance(beat, dict) and beat.get("up") == stalled.up:
            self._give_up_runner(stalled.still_s)

    def has_progress(self) -> bool | None:
        """Return whether a log of the job has grown lately; None if its node does not respond."""
        if self.done:
            return False
        try:
            beat = self.session.poll(self.spec).get("heartbeat")
        except InfraError:
            return None
        logs = beat.get("progress", {}).values() if isinstance(beat, dict) else ()
        return any(float(log["idle_s"]) < self.spec.hang_s for log in logs)

    def settle_silence(self, *, active: bool) -> None:
        """Report to the runner whether the peers of this silent member make progress; if not, it hangs.

        Raises:
            InfraError: the node does not respond.
        """
        self.session.report_peers(self.spec, active=active)
        why, self.silent = self.silent, ""
        if not active and why:
            self.hangs = why
            self._note(f"node {self.name} hangs: {why}; no other node makes progress; collecting evidence")

    def _give_up_runner(self, still_s: float) -> None:
        self._give_up(f"the runner on node {self.name} stopped responding: no heartbeat for {rough(still_s)}")

    def _give_up(self, why: str) -> None:
        """End the runner and its job from outside: the node responds, the runner does not or its record is wrong.

        Processes that continued would print what is not in the logs that are fetched next.
        """
        try:
            self.session.end_stuck(self.spec)
        except InfraError as error:
            why += f"; its processes could not be ended: {error.message}"
        self.lost = why

    def _take(self, message: Mapping[str, Any]) -> None:
        event = decode(message)
        if isinstance(event, LegEnd) and not self._is_new(event):
            event = None
        self.trained = self.trained or isinstance(event, JobTrained)
        shown = progress_event(self._unseen(event), step=self.spec.step, node=self.name)
        match event:
            case JobLog(leg, text, end):
                self._resume[leg] = end
                self.recent = (self.recent + text)[-RECENT:]
            case JobHang(why, unsure, number):
                self.hangs, self.silent = ("", why) if unsure else (why, "")
                self._hang_number = number
            case RunnerAlive(beat):
                if still_s := self._stillness.beyond(beat):
                    self._give_up_runner(still_s)
            case JobFiles(packed):
                self.sent = unpack(packed)
            case JobEnd(record, payload, artefacts):
                invalid = invalid_exit_message(self.spec, record, payload)
                self.artefacts, self.record = dict(artefacts), None if invalid else record
                if invalid:
                    self._give_up(f"node {self.name}: {invalid}")
                    self.damaged = True
                self.known_at = time.time()
            case JobGone(why):
                self.lost = f"node {self.name}: {why}"
        if shown is not None:
            self._listener(shown)
        if not isinstance(event, JobLog):
            self.wake()

    def _unseen(self, event: JobEvent | None) -> JobEvent | None:
        """Return the event without what another process has shown of its log; None if it has shown all."""
        shown = self._shown.get(event.leg, 0) if isinstance(event, JobLog) else 0
        if not isinstance(event, JobLog) or not shown:
            return event
        text = event.text.encode()[-max(0, event.end - shown) :] if event.end > shown else b""
        return JobLog(event.leg, text.decode(errors="replace"), event.end) if text else None

    def _is_new(self, event: LegEnd) -> bool:
        """Store a leg's record; return whether it was unknown."""
        if event.record is None or not is_leg_of(event.record, self.spec):
            return False
        is_new = event.record.leg not in self.legs
        self.legs[event.record.leg] = event.record
        return is_new

    def _note(self, text: str) -> None:
        self._listener(Event(Kind.NOTE, text, step=self.spec.step, node=self.name))
