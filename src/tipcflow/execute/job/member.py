"""One node's part of a step while it goes on: watched in a thread of its own, re-attached when the link breaks."""

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
# So much of the end of what was seen of its log is kept, characters: enough for a traceback.
RECENT = 16 * 1024


class JobSession(Protocol):
    """What a member needs of its node (execute.session.NodeSession is the real one)."""

    @property
    def node(self) -> Node:
        """The node behind this session."""
        ...

    def start(self, spec: JobSpec) -> dict[str, Any]:
        """Start the job or re-attach to it; the runner's answer."""
        ...

    def begin(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        """`start` and `watch` in one: the answer to `start` is the first event."""
        ...

    def go(self, spec: JobSpec) -> None:
        """Let a staged job start its first command."""
        ...

    def stop(self, spec: JobSpec, reason: str, by: StoppedBy) -> None:
        """Ask the runner to end the job, and say who wants that."""
        ...

    def poll(self, spec: JobSpec) -> dict[str, Any]:
        """State, heartbeat, exit record and legs of the job."""
        ...

    def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        """The runner's events from the given log offsets on, until the job ends or `seconds` have passed."""
        ...

    def evidence(self, spec: JobSpec, seconds: float) -> dict[str, Any]:
        """What can be seen of a job that may hang; the job goes on."""
        ...

    def end_stuck(self, spec: JobSpec) -> None:
        """End the processes of a job whose runner does nothing any more, and the runner."""
        ...

    def reconnect(self) -> None:
        """A fresh connection to the same node."""
        ...


class Member:
    """A job on one node.

    Attributes:
        record: how it ended, once it has.
        legs: leg id -> how that leg ended.
        artefacts: path relative to the suite's root -> size, of the files that the job wrote.
        sent: small files of the job that came along with its end.
        lost: why nothing is known of it any more, '' while it can be watched.
        recent: the end of what was seen of its log.
        hangs: why its runner says that it hangs, '' while it does not.
        down_since, known_at: when the link broke (0 while it stands) and when the record came, seconds since the
            epoch.
        released: whether the job was told to go, or needs not be told.
        staged: set when the runner waits for `go` (or has gone on, or ended).
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
        """Leg ('' for a step's only command) -> bytes of its log that were seen."""
        return dict(self._resume)

    @property
    def done(self) -> bool:
        """Whether nothing more will be heard of it."""
        return self.record is not None or bool(self.lost)

    def start(self, wake: Callable[[], None]) -> None:
        """Start the job on its node, or re-attach to it, and watch it until it ended.

        Raises:
            InfraError: the node cannot be reached or refuses.
        """
        self._wake = wake
        answer = self.session.start(self.spec)
        record = exit_record(answer.get("record"))
        if answer.get("state") == "ended" and record and record.reason is EndReason.REFUSED:
            # On a disk so full that not even a record could be kept, this answer is all there is.
            self.record = record
            self.staged.set()
            return
        self._thread = threading.Thread(target=self._watch, name=f"watch-{self.name}", daemon=True)
        self._thread.start()

    def join(self, timeout: float) -> bool:
        """Wait until the watching thread has ended; whether it has."""
        if self._thread is not None:
            self._thread.join(timeout)
            return not self._thread.is_alive()
        return True

    def _watch(self) -> None:
        try:
            while not self.done:
                self.follow(WATCH_S)
        except BaseException as error:  # a thread that dies silently would make the step wait for its deadline
            self.lost = f"watching node {self.name} failed: {error!r}"
        finally:
            self.staged.set()
            self._wake()

    def begin(self, seconds: float) -> dict[str, Any]:
        """Start the job on its node, or find it; what the next `follow` shows comes along, for so many seconds.

        Returns:
            the runner's answer.

        Raises:
            InfraError: the node cannot be reached or refuses.
        """
        self._events = self.session.begin(self.spec, self._resume, seconds)
        return next(self._events)

    def follow(self, seconds: float) -> bool:
        """Watch for so many seconds, or until the job has ended; whether nothing more will be heard of it."""
        events, self._events = self._events, None
        self._stillness.begin_watch()
        try:
            for message in events or self.session.watch(self.spec, self._resume, seconds):
                self._take(message)
                if self.done:
                    break  # nothing more is said: how the runner's own process ends is not waited for
        except InfraError as error:
            self._reattach(str(error))
        return self.done

    def take_answer(self, answer: Mapping[str, Any]) -> None:
        """Take what the runner answered to `start` or `poll`."""
        for told in answer.get("legs") or []:
            if (record := exit_record(told)) is not None:
                self.legs[record.leg] = record
        if answer.get("record"):
            self._take({**answer, "event": "end"})
        elif answer.get("state") in ("lost", "absent"):
            self._take({"event": answer["state"]})

    @property
    def state(self) -> MemberState:
        """What is known, for others who run the same attempt."""
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
        """Go on behind what another process has shown of the logs."""
        for leg, seen in log_bytes.items():
            self._resume[leg] = max(seen, self._resume.get(leg, 0))

    def restore(self, state: MemberState) -> None:
        """Take over what another process knows."""
        self.released = state.released
        self.generation, self.cleared = state.generation, state.cleared
        self.record, self.lost = state.record, state.lost
        self.legs, self.artefacts = dict(state.legs), dict(state.artefacts)
        self._resume = dict(state.log_bytes)
        self.down_since, self.known_at = state.down_since, state.known_at

    def _reattach(self, why: str) -> None:
        """The link broke: the job goes on without us; find it again until the time for that is over."""
        self._say(Kind.NOTE, f"node {self.name}: connection lost ({why}); the job goes on there, reconnecting")
        self.down_since = self.down_since or time.time()
        deadline = time.monotonic() + self._reconnect_s
        while time.monotonic() < deadline:
            try:
                self.session.reconnect()
                self._say(Kind.NOTE, f"node {self.name}: connected again")
                self.down_since = 0.0
                return
            except InfraError as error:
                why = str(error)
                time.sleep(RECONNECT_EVERY_S)
        self.lost = f"node {self.name} was lost: {why}"

    def end_if_still(self, stood: Mapping[str, Any]) -> None:
        """End a runner that another process saw stand still, unless it has written a heartbeat since.

        Args:
            stood: `up` of the heartbeat that it had then, and for how long it had stood still (`still_s`).
        """
        if self.done:
            return
        try:
            answer = self.session.poll(self.spec)
        except InfraError:
            return  # whoever watches it says what is wrong with the node
        self.take_answer(answer)
        beat = answer.get("heartbeat")
        if not self.done and isinstance(beat, dict) and beat.get("up") == stood["up"]:
            self._give_up_runner(float(stood["still_s"]))

    def _give_up_runner(self, still_s: float) -> None:
        """The node answers and the runner does not: end it from outside, with its job."""
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
            self._say(Kind.NOTE, f"node {self.name} hangs: {self.hangs}; its evidence is collected")
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
            return  # the end of the attempt names the line (closing)
        known = record.leg in self.legs  # each new watch tells all legs again
        self.legs[record.leg] = record
        if not known:
            self._say(Kind.LEG, json.dumps({"exit_code": record.exit_code}), leg=record.leg)

    def _say(self, kind: Kind, text: str, *, leg: str = "") -> None:
        self._listener(Event(kind, text, step=self.spec.step, node=self.name, leg=leg))
