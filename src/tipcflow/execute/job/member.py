"""One node's part of a running step: watched in its own thread, re-attached after the connection breaks."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from tipcflow.domain import EndReason, ExitRecord, InfraError, JobSpec, MemberState, Node, StoppedBy
from tipcflow.execute.job.exit_records import exit_record, found
from tipcflow.execute.node.inline_files import NOTHING_SENT, unpack
from tipcflow.execute.progress import Event, Kind, Listener
from tipcflow.remote.stillness import Stillness

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

    def start(self, spec: JobSpec) -> dict[str, Any]:
        """Start the job or re-attach to it; return the runner's response."""
        ...

    def begin(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        """`start` and `watch` in one: the response to `start` is the first event."""
        ...

    def go(self, spec: JobSpec) -> None:
        """Let a staged job start its first command."""
        ...

    def stop(self, spec: JobSpec, reason: str, by: StoppedBy) -> None:
        """Request the end of the job; `by` is the initiator."""
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
        recent: the end of its log.
        hangs: the runner's reason for a hang; '' without one.
        down_since, known_at: when the connection broke (0 while connected) and when the record arrived, seconds
            since the epoch.
        released: whether `go` was sent to the job or is not needed.
        staged: set when the runner waits for `go`, or has continued or ended.
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
        self.sent = NOTHING_SENT
        self.lost = ""
        self.recent = ""
        self.hangs = ""
        self.down_since = 0.0
        self.known_at = 0.0
        self.staged = threading.Event()
        self.released = False
        self.generation = 0
        self.cleared = -1
        self._resume: dict[str, int] = {}
        self._listener = listener
        self._reconnect_s = reconnect_s
        self._stillness = Stillness(silence_s)
        self._thread: threading.Thread | None = None
        self._wake: Callable[[], None] = lambda: None
        self._events: Iterator[dict[str, Any]] | None = None

    @property
    def name(self) -> str:
        """The node's name."""
        return self.session.node.name

    @property
    def log_bytes(self) -> dict[str, int]:
        """Leg ('' for a step's only command) -> number of log bytes received."""
        return dict(self._resume)

    @property
    def done(self) -> bool:
        """Whether the member has ended or is lost."""
        return self.record is not None or bool(self.lost)

    def start(self, wake: Callable[[], None]) -> None:
        """Start the job on its node or re-attach to it, and watch it until it ends.

        Raises:
            InfraError: the node is unreachable or refuses the job.
        """
        self._wake = wake
        answer = self.session.start(self.spec)
        record = exit_record(answer.get("record"))
        if answer.get("state") == "ended" and record and record.reason is EndReason.REFUSED:
            # If the disk is too full to store a record, this response is the only information.
            self.record = record
            self.staged.set()
            return
        self._thread = threading.Thread(target=self._watch, name=f"watch-{self.name}", daemon=True)
        self._thread.start()

    def join(self, timeout: float) -> bool:
        """Wait for the end of the watching thread; return whether it has ended."""
        if self._thread is not None:
            self._thread.join(timeout)
            return not self._thread.is_alive()
        return True

    def _watch(self) -> None:
        try:
            while not self.done:
                self.follow(WATCH_S)
        except BaseException as error:  # if the thread died silently, the step would wait for its deadline
            self.lost = f"watching node {self.name} failed: {error!r}"
        finally:
            self.staged.set()
            self._wake()

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

    def take_answer(self, answer: Mapping[str, Any]) -> None:
        """Process the runner's response to `start` or `poll`."""
        for told in answer.get("legs") or []:
            if (record := exit_record(told)) is not None:
                self.legs[record.leg] = record
        if answer.get("record"):
            self._take({**answer, "event": "end"})
        elif answer.get("state") in ("lost", "absent"):
            self._take({"event": answer["state"]})

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
            log_bytes=self._resume,
            lost=self.lost,
            down_since=self.down_since,
            known_at=self.known_at,
        )

    def resume_at(self, log_bytes: Mapping[str, int]) -> None:
        """Continue after the log bytes that another process has shown."""
        for leg, seen in log_bytes.items():
            self._resume[leg] = max(seen, self._resume.get(leg, 0))

    def restore(self, state: MemberState) -> None:
        """Take over the state known to another process."""
        self.released = state.released
        self.generation, self.cleared = state.generation, state.cleared
        self.record, self.lost = state.record, state.lost
        self.legs, self.artefacts = dict(state.legs), dict(state.artefacts)
        self._resume = dict(state.log_bytes)
        self.down_since, self.known_at = state.down_since, state.known_at

    def _reattach(self, why: str) -> None:
        """Re-attach to the job after the connection broke; the job keeps running. Stops at the reconnect
        deadline."""
        self._say(Kind.NOTE, f"node {self.name}: connection lost ({why}); the job is still running, reconnecting")
        self.down_since = self.down_since or time.time()
        deadline = time.monotonic() + self._reconnect_s
        while time.monotonic() < deadline:
            try:
                self.session.reconnect()
                self._say(Kind.NOTE, f"node {self.name}: reconnected")
                self.down_since = 0.0
                return
            except InfraError as error:
                why = str(error)
                time.sleep(RECONNECT_EVERY_S)
        self.lost = f"node {self.name} was lost: {why}"

    def end_if_still(self, stood: Mapping[str, Any]) -> None:
        """End a runner that another process reported as stalled, unless it has written a heartbeat since.

        Args:
            stood: `up` of its heartbeat at that time, and for how long it had stalled (`still_s`).
        """
        if self.done:
            return
        try:
            answer = self.session.poll(self.spec)
        except InfraError:
            return  # the process that watches the member reports the error
        self.take_answer(answer)
        beat = answer.get("heartbeat")
        if not self.done and isinstance(beat, dict) and beat.get("up") == stood["up"]:
            self._give_up_runner(float(stood["still_s"]))

    def _give_up_runner(self, still_s: float) -> None:
        """End the runner and its job from outside: the node responds and the runner does not."""
        why = f"the runner on node {self.name} stopped responding: no heartbeat for {still_s:.0f} s"
        try:
            self.session.end_stuck(self.spec)
        except InfraError as error:
            why += f"; its processes could not be ended: {error.message}"
        self.lost = why

    def _take(self, message: dict[str, Any]) -> None:
        event = message.get("event")
        if event == "state":
            if message.get("state") != "staging":
                self.staged.set()
            self._say(Kind.STATE, str(message.get("state", "")))
        elif event == "log":
            leg = str(message.get("leg", ""))
            data = str(message.get("data", ""))
            self._resume[leg] = int(message["offset"]) + int(message["size"])
            self.recent = (self.recent + data)[-RECENT:]
            self._say(Kind.LOG, data, leg=leg)
        elif event == "hang":
            self.hangs = str(message.get("message", "")) or "no progress"
            self._say(Kind.NOTE, f"node {self.name} hangs: {self.hangs}; collecting evidence")
        elif event == "leg":
            self._take_leg(message["record"])
        elif event == "alive":
            if still_s := self._stillness.beyond(message):
                self._give_up_runner(still_s)
        elif event == "files":
            self.sent = unpack(message)
        elif event == "end":
            files = message.get("artefacts") or []
            there = (file for file in files if file.get("exists", True) and file.get("fresh", True))
            self.artefacts = {str(file["path"]): int(file["size"]) for file in there}
            self.record = exit_record(message["record"])
            if self.record is None:
                told = found(message["record"])
                self.lost = f"node {self.name}: exit.json is not an exit record: found {told}"
            self.known_at = time.time()
        elif event in ("lost", "absent"):
            what = "the runner died without an exit record" if event == "lost" else "the job's folder is gone"
            self.lost = f"node {self.name}: {what}"
        self._wake()

    def _take_leg(self, told: Any) -> None:
        record = exit_record(told)
        if record is None:
            return  # closing the attempt reports the line
        known = record.leg in self.legs  # every new watch repeats all legs
        self.legs[record.leg] = record
        if not known:
            self._say(Kind.LEG, json.dumps({"exit_code": record.exit_code}), leg=record.leg)

    def _say(self, kind: Kind, text: str, *, leg: str = "") -> None:
        self._listener(Event(kind, text, step=self.spec.step, node=self.name, leg=leg))
