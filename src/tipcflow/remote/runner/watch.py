"""Stream of a job's events for a controller, including all events that it missed."""

from __future__ import annotations

import os
import select
import time
from typing import Any, BinaryIO

from .files import (
    PIECE,
    Json,
    describe,
    has_ended,
    lines,
    load,
    locked,
    log_name,
    open_regular,
    print_event,
    touch_lease,
)

TICK_S, LOOK_S, ALIVE_S = 0.02, 0.1, 1.0
STALE_S = 3.0  # an older heartbeat is reported even while logs grow
AT_ONCE = 16  # limit of pieces of one log before the other files are read
# Bytes: a reader that is further than BEHIND behind a log's end gets only the last KEPT bytes of the log.
BEHIND, KEPT = 16 * 1024 * 1024, 1024 * 1024


def text_of(data: bytes, final: bool) -> tuple[str, int]:
    """Return the text of a piece of log and the number of bytes used: an incomplete character waits for its
    rest."""
    if not final:
        for back in range(1, min(4, len(data)) + 1):
            lead = data[-back]
            if lead >= 0xC0:
                if back < (2 if lead < 0xE0 else 3 if lead < 0xF0 else 4):
                    data = data[:-back]
                break
            if lead < 0x80:
                break
    return data.decode("utf-8", "replace"), len(data)


def age_of(beat: Json) -> float:
    """Return the age of a heartbeat in seconds, by a monotonic clock of this node."""
    return round(max(0.0, time.monotonic() - float(beat.get("up", 0.0))), 1)


def cpu_of(pid: int) -> bytes:
    """Return the CPU time of a process in the kernel's format; empty if the process does not exist."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as handle:
            stat = handle.read()
    except OSError:
        return b""
    return b" ".join(stat[stat.rindex(b")") + 2 :].split()[11:13])


class Watch:
    """One controller's stream of one job.

    Args:
        resume: leg -> bytes of its log that the controller already has.
        files: send the small files that the job leaves before its end event.
    """

    def __init__(self, folder: str, resume: dict[str, int], *, files: bool = False) -> None:
        self.folder, self.files = folder, files
        spec = load(self.path("job.json")) or {"commands": []}
        self.offsets = {command["leg"]: int(resume.get(command["leg"], 0)) for command in spec["commands"]}
        self.samples = self.legs = 0
        self.hang: Any = ""  # what identifies the hang that was printed last
        self.still, self.looked, self.mark = 0.0, time.monotonic(), (None, b"")
        self.trained = False
        self.state, self.sampled, self.emitted, self.aged = "", 0.0, 0.0, 0.0
        self.stdout = select.poll()
        self.stdout.register(1, 0)  # only hang-ups and errors

    def path(self, name: str) -> str:
        """Return the path of a file in the job folder."""
        return os.path.join(self.folder, name)

    def emit(self, event: Json) -> None:
        """Print an event."""
        self.emitted = time.monotonic()
        print_event(event)

    def logs(self, final: bool) -> bool:
        """Print new bytes of all logs; return whether there may be more."""
        more = False
        for leg in self.offsets:
            try:
                with open_regular(self.path(log_name(leg))) as handle:
                    self.catch_up(leg, handle)
                    handle.seek(self.offsets[leg])
                    for _ in range(AT_ONCE):
                        data = handle.read(PIECE)
                        text, size = text_of(data, final and len(data) < PIECE)
                        if not size:
                            break
                        offset, self.offsets[leg] = self.offsets[leg], self.offsets[leg] + size
                        self.emit({"event": "log", "leg": leg, "offset": offset, "size": size, "data": text})
                        handle.seek(self.offsets[leg])
                    else:
                        more = True
            except OSError:
                continue  # not created yet, or not a regular file
        return more

    def catch_up(self, leg: str, handle: BinaryIO) -> None:
        """Skip output that cannot be transferred in time: a command may permanently write faster than the
        connection transfers."""
        offset, size = self.offsets[leg], os.fstat(handle.fileno()).st_size
        if size - offset <= BEHIND:
            return
        handle.seek(size - KEPT)
        head = handle.read(PIECE)
        skipped = size - KEPT + (head.find(b"\n") + 1) - offset
        self.offsets[leg] += skipped
        text = f"\n[tipcflow: {skipped} bytes of this log are not shown; the whole is on the node]\n"
        self.emit({"event": "log", "leg": leg, "offset": offset, "size": skipped, "data": text})

    def news(self, final: bool) -> None:
        """Print state, samples (the last of each second) and legs since the last call."""
        beat = load(self.path("heartbeat.json"))
        if beat and beat["state"] != self.state and not final:
            self.state = beat["state"]
            self.emit({"event": "state", "state": self.state, "pid": beat["pid"], "t": beat["t"]})
        if beat:
            self.report_hang(beat)
            if beat.get("trained") and not self.trained:
                self.trained = True
                self.emit({"event": "trained", "t": beat["t"]})
        if final or time.monotonic() - self.sampled >= ALIVE_S:
            self.sampled = time.monotonic()
            samples, self.samples = lines(self.path("samples.jsonl"), self.samples, last=PIECE)
            if samples:
                self.emit(dict(samples[-1], event="sample"))
        records, self.legs = lines(self.path("legs.jsonl"), self.legs)
        for record in records:
            self.emit({"event": "leg", "record": record})
        self.alive(beat)

    def report_hang(self, beat: Json) -> None:
        """Print a hang once. Runners of older versions do not number hangs: the message identifies them."""
        message, number = beat.get("hang", ""), beat.get("hang_number", 0)
        current = message and (number or message)
        if current == self.hang:
            return
        self.hang = current
        if message:  # otherwise another leg has started, or the peers make progress
            facts = {"progress": beat["progress"], "unsure": beat.get("hang_unsure", False), "t": beat["t"]}
            self.emit(dict(facts, event="hang", message=message, number=number))

    def alive(self, beat: Json | None) -> None:
        """Print the heartbeat with its age in seconds: if no other event was printed, and whenever the
        heartbeat is stale."""
        now = time.monotonic()
        if not beat or now - max(self.aged, 0.0 if self.stands_still(beat) else self.emitted) < ALIVE_S:
            return
        self.aged = now
        self.emit(dict(beat, event="alive", age_s=age_of(beat), still_s=round(self.still_s(beat), 1)))

    def still_s(self, beat: Json) -> float:
        """Return for how many seconds of this watch the runner has neither written a heartbeat nor used its
        CPU.

        A runner that reads large outputs works without a heartbeat. Time during which this process was
        stopped does not count.
        """
        now, mark = time.monotonic(), (beat.get("up"), cpu_of(beat["pid"]))
        passed, self.looked = min(now - self.looked, 2 * ALIVE_S), now
        self.still, self.mark = (self.still + passed if mark == self.mark else 0.0), mark
        return self.still

    @staticmethod
    def stands_still(beat: Json) -> bool:
        """Return whether the runner has stopped writing its heartbeat: it was stopped, or waits for a disk."""
        return age_of(beat) > STALE_S

    def send_files(self) -> None:
        """Print the inline files for a controller that requests them."""
        spec = load(self.path("job.json"))
        if self.files and spec:
            from .inline_files import pack_inline_files

            self.emit(dict(pack_inline_files(self.folder, spec), event="files"))

    def run(self, seconds: float) -> None:
        """Print events until the job has ended or is lost, the reader disconnects, or `seconds` have passed."""
        now = time.monotonic()
        until, look, lease = now + seconds, now, now
        while not self.stdout.poll(0):
            now = time.monotonic()
            ended = has_ended(self.folder)  # checked first: the logs were written before
            lost = False
            if now >= lease:
                touch_lease(self.folder)
                lease = now + ALIVE_S
            more = False
            if ended or now >= look:
                lost = not ended and not locked(self.folder)
                more = self.logs(ended or lost)
                self.news(ended or lost)
                look = now if more else now + LOOK_S
            if (ended or lost) and not more:
                report = describe(self.folder)
                if report["record"]:
                    if ended:
                        self.send_files()
                        return self.emit(
                            {"event": "end", "record": report["record"], "artefacts": report["artefacts"]}
                        )
                elif report["state"] != "staging":
                    return self.emit({"event": report["state"] if report["state"] == "absent" else "lost"})
            if now >= until:
                return None
            if not more:
                self.stdout.poll(TICK_S * 1000)
        return None
