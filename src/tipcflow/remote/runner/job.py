"""Execution of one job, from its locks to its exit record."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import subprocess
import time

from . import container, oom, opened_files, stack_signal
from .before import Before
from .cgroup import group_name, make_group
from .ending import DISK_FULL, job_record, write_record
from .files import PIECE, RESERVED, Json, load, log_name, open_append, save, touch_lease
from .hang import Hang
from .outputs import examine, expected, matches
from .probe import probes
from .progress import Progress
from .slots import Refused, take_cpus, take_host_slot, take_slot
from .start import code_of, refusal
from .unmet import unmet_need
from .workers import Workers

GRACE_S = 0.3  # time for a finished command's helpers (tee, a launcher's workers) to end by themselves
TICK_S, TICK_STAGED_S = 0.05, 0.01
BASH = "/bin/bash"
ENDS = ("stopped", "deadline", "lease_expired", "hang")


class Job:
    """One job on this node."""

    def __init__(self, folder: str, spec: Json, lock: int, wake: int) -> None:
        self.folder, self.spec, self.lock, self.wake = folder, spec, lock, wake
        self.slots: list[int] = []
        self.state, self.leg, self.why, self.by, self.signal = "staging", "", "", "", 0
        self.workers, self.progress = Workers(folder, spec), Progress(folder, spec)
        self.hang = Hang(folder, spec, self.workers, self.progress)
        self.before = Before(folder, spec)
        self.begin = self.next_beat = self.next_sample = 0.0
        self.lease_ns, self.renewed_at = 0, time.monotonic()
        self.room, self.ooms, self.since_ns = 1 << 62, oom.kills(), 0
        self.records: list[Json] = []
        self.probes: list[Json] = []
        self.disk_full = False

    def path(self, name: str) -> str:
        """Return the path of a file in the job folder."""
        return os.path.join(self.folder, name)

    def prepare(self) -> None:
        """Do everything that can refuse the job; space for the records, which a full disk could prevent later,
        comes first."""
        os.makedirs(self.path("logs"), exist_ok=True)
        for name in (RESERVED, "ballast"):
            with open(self.path(name), "wb") as handle:
                handle.write(b" " * PIECE)
        os.ftruncate(self.lock, 0)
        os.pwrite(self.lock, b"%d" % os.getpid(), 0)
        touch_lease(self.folder)
        for place in (self.spec["workspace"], self.spec["root"]):
            disk, least = os.statvfs(place), self.spec["min_free_bytes"]
            if disk.f_bavail * disk.f_frsize < least:
                self.disk_full = True
                raise Refused(f"{place} has {disk.f_bavail * disk.f_frsize} bytes free, the step needs {least}")
        for number in sorted(self.spec["slots"]):
            self.slots.append(take_slot(self.spec, number))
            self.slots += take_host_slot(self.spec, number)
        take_cpus(self.spec["cpus"])
        self.workers.group = make_group(self.folder, group_name())
        self.probe()

    def probe(self) -> None:
        """Run the node probes if the job requests them."""
        if self.spec.get("probe"):
            self.probes.append(probes(self.folder))

    def set_state(self, state: str) -> None:
        """Enter a state; it is published immediately."""
        self.state, self.next_beat = state, 0.0
        self.beat()

    def beat(self) -> None:
        """Rewrite the heartbeat once a second; a full disk is tolerated and recorded."""
        if time.monotonic() < self.next_beat:
            return
        self.next_beat = time.monotonic() + 1.0
        beat = {
            "t": time.time(),
            "up": time.monotonic(),
            "state": self.state,
            "pid": os.getpid(),
            "leg": self.leg,
            "log_size": 0,
            "log_t": 0,
        }
        self.progress.poll()
        beat["trained"] = self.workers.servers.trained(self.workers.ends)
        beat["progress"], beat["hang"] = self.progress.summary(), self.hang.message
        beat["hang_unsure"], beat["hang_number"] = self.hang.unsure, self.hang.number
        try:
            log = os.stat(self.path(log_name(self.leg)))
            beat.update(log_size=log.st_size, log_t=log.st_mtime)
        except OSError:
            pass
        try:
            disk = os.statvfs(self.spec["root"])
            self.room = min(self.room, disk.f_bavail * disk.f_frsize)
            save(self.path("heartbeat.json"), json.dumps(beat))
        except OSError:
            pass

    def sample(self) -> None:
        """Take and store a sample at regular intervals."""
        if time.monotonic() >= self.next_sample:
            self.next_sample = time.monotonic() + self.spec["sample_every_s"]
            line = self.workers.sample(self.leg)
            if line:
                self.append("samples.jsonl", line)

    def append(self, name: str, line: Json) -> bool:
        """Append a whole line, or nothing if the disk is full."""
        data = (json.dumps(line) + "\n").encode()
        try:
            with open_append(self.path(name)) as handle:
                size = os.fstat(handle.fileno()).st_size
                if handle.write(data) == len(data):
                    return True
                handle.truncate(size)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENXIO):
                return False  # the path is not a regular file
        self.room = 0
        return False

    def stop_reason(self) -> tuple[str, str]:
        """Return the reason and the initiator from the file `stop`."""
        report = load(self.path("stop"))
        report = report if isinstance(report, dict) else {}
        return str(report.get("reason", "")).strip() or "stopped", str(report.get("by", ""))

    def end_reason(self) -> str:
        """Return why the job has to end now, '' if it may continue."""
        now = time.monotonic()
        try:
            lease_ns = os.stat(self.path("lease")).st_mtime_ns
            if lease_ns != self.lease_ns:  # compare for a change, not with the clock, because clocks jump
                self.lease_ns, self.renewed_at = lease_ns, now
        except OSError:
            pass
        if self.signal:
            self.why = f"the runner got {signal.Signals(self.signal).name}"
            self.by = "node" if self.signal == signal.SIGTERM else ""
            return "stopped"
        if os.path.exists(self.path("stop")):
            self.why, self.by = self.stop_reason()
            return "stopped"
        if self.begin and now - self.begin > self.spec["deadline_s"]:
            self.why = f"not done within {self.spec['deadline_s']:g} s"
            return "deadline"
        if now - self.renewed_at > self.spec["lease_s"]:
            self.why = f"no contact from a controller for {self.spec['lease_s']:g} s"
            return "lease_expired"
        return ""

    def barrier(self) -> str:
        """Wait for `go`; return why it will not come, or ''."""
        self.set_state("staged")
        until = time.monotonic() + self.spec["barrier_s"]
        while True:
            reason = self.end_reason()  # checked first: a stop takes precedence over a go
            if reason or os.path.exists(self.path("go")):
                return reason
            if time.monotonic() > until:
                self.why = f"no go within {self.spec['barrier_s']:g} s"
                return "barrier_timeout"
            self.beat()
            time.sleep(TICK_STAGED_S)

    def wait(self, pid: int) -> str:
        """Wait until this child has ended or the job has to end; return the reason for the latter, or ''."""
        while pid not in self.workers.statuses:
            if select.select([self.wake], [], [], TICK_S)[0]:
                os.read(self.wake, 4096)
            self.workers.reap()
            self.workers.ends.poll()
            self.workers.observer.poll()
            self.before.poll()
            reason = self.end_reason()
            if not reason and self.workers.servers.over(self.workers.ends):
                return ""
            if not reason and self.hang.over():
                self.why, reason = self.hang.message, "hang"
            if reason == "deadline" and not self.hang.seen(self.why):
                reason = ""
            if reason and pid not in self.workers.statuses:
                return reason
            self.beat()
            self.sample()
            if self.hang.notice():
                self.next_beat = 0.0
                self.beat()  # published immediately: peers have to be inspected before they react
                if not self.hang.unsure:
                    self.hang.collect("hang", self.hang.message)
        return ""

    def launch(self, command: Json) -> subprocess.Popen[bytes]:
        """Start a command in its own session."""
        root = self.spec["root"]
        env = {name: value for name, value in os.environ.items() if name != "TIPCFLOW_RUNNER"}
        env.update({**self.spec["env"], **command["env"]})
        stacks = bool(self.spec.get("hang_s") and self.spec.get("hang_signal"))
        probe = bool(self.spec.get("framework_probe"))
        stack_signal.prepare(env, self.folder, stacks=stacks, probe=probe, source=root)
        if self.spec.get("container"):
            save(self.path(container.MARK), self.spec["container"])
        name = self.path(log_name(self.leg))
        with open_append(name) as log:
            share_log(name, command["log"] and os.path.join(root, command["log"]))
            return subprocess.Popen(
                [BASH, "-c", command["text"]], cwd=os.path.join(root, command["cwd"]),
                env={name: value for name, value in env.items() if value != ""},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=self.workers.group.enter if self.workers.group else None,  # noqa: PLW1509 (no threads)
            )  # fmt: skip

    def command(self, command: Json) -> Json:
        """Run one command until it and all its processes have ended; return its exit record."""
        self.leg = command["leg"]
        self.workers.forget()
        self.hang.begin()
        stack_signal.clear(self.folder)
        started_at, begin = time.time(), time.monotonic()
        child = self.launch(command)
        self.progress.begin(log_name(self.leg), self.since_ns)
        self.next_beat = self.next_sample = 0.0
        reason = self.wait(child.pid)
        self.workers.ends.poll()  # the launcher has waited for its ranks by now
        ends, servers = list(self.workers.ends.ended), self.workers.servers
        servers_ended, finished = list(servers.ended), servers.finished
        sent = self.workers.end(self.beat, grace_s=0.0 if reason or finished else GRACE_S)
        # A launcher whose trainers have succeeded waits for the servers, which are ended here.
        status = 0 if finished else self.workers.statuses.get(child.pid)
        if not reason and status and self.signal:
            reason = self.end_reason()  # a shutdown ends the command at the same moment as the runner
        child.returncode = status or 0  # this process has waited for the child itself: subprocess must not
        values: Json = {"reason": reason or "exited", "message": self.why if reason else ""}
        if status is not None and os.WIFSIGNALED(status):
            values["signal"] = os.WTERMSIG(status)
            if not reason:
                values.update(reason="signaled", message=f"ended by signal {os.WTERMSIG(status)}")
        elif status is not None:
            values["exit_code"] = os.WEXITSTATUS(status)
            if finished:
                values["message"] = servers.message()
            elif not reason and values["exit_code"]:
                values["message"] = f"exited with {values['exit_code']}"
                values["unmet"] = unmet_need(command["env"], values["exit_code"])
        if self.hang.message and reason != "hang" and not self.hang.unsure:
            values["message"] = "; ".join(text for text in (values["message"], self.hang.message) if text)
        if reason or values.get("exit_code") != 0:
            count, run = len(self.spec["slots"]), self.spec["run"]
            values["gpu_processes"] = self.workers.gpu.holders(count, run, self.workers.seen)
        left = [proc.pid for proc in self.workers.find()]
        if left:
            values["message"] += f"; processes {left} outlived SIGKILL"
        values["message"] = (values["message"] + self.end_container()).lstrip("; ")
        return dict(
            {key: self.spec[key] for key in ("run", "step", "attempt", "node")},
            schema_version=1, leg=self.leg, pid=child.pid,
            started_at=started_at, ended_at=started_at + time.monotonic() - begin,
            peak_rss_bytes=self.workers.peak, peak_gpu_bytes=self.workers.gpu_peak, world_size=self.workers.world,
            killed=0 if reason or finished else len(sent), ranks=ends,
            servers=servers_ended, servers_finished=finished, observed=self.workers.observer.summary(),
            probed=bool(self.spec.get("framework_probe")), processes=stack_signal.collect(self.folder),
            **self.stopped_by(reason), **values,
        )  # fmt: skip

    def stopped_by(self, reason: str) -> Json:
        """Return the initiator of the job's end, for its exit record; empty if the job ended otherwise, or it
        is unknown."""
        return {"stopped_by": self.by} if reason == "stopped" and self.by else {}

    def end_container(self) -> str:
        """Remove the container that the command has run, if any; return why it may still exist, as the end of a
        message."""
        if not os.path.exists(self.path(container.MARK)):
            return ""
        trouble = container.remove(self.spec)
        if trouble:
            return f"; container {self.spec['container']} was not removed: {trouble}"
        container.unmark(self.path(container.MARK))
        return ""

    def commands(self) -> str:
        """Run the commands in order; return the reason if the job had to end before its last command, or ''."""
        self.set_state("running")
        try:
            open_append(self.path("began")).close()
            self.since_ns = os.stat(self.path("began")).st_mtime_ns
        except OSError:
            self.since_ns = time.time_ns() - 20_000_000  # a file's clock may be a few ticks behind
        self.before.begin()
        self.begin = time.monotonic()
        for command in self.spec["commands"]:
            reason = self.end_reason()
            if reason:
                return reason
            try:
                record = self.command(command)
            except OSError as error:
                path = error.filename or BASH
                record = refusal(
                    self.spec, f"cannot start: {path}: {error.strerror}",
                    code=code_of(error), interpreter=BASH if path == BASH else "",
                )  # fmt: skip
                record["leg"] = command["leg"]
                # Processes that the failed launch has started must not disturb the next command.
                self.workers.end(self.beat, grace_s=0.0)
            self.records.append(record)
            if not self.append("legs.jsonl", record):
                self.drop_ballast()
                self.append("legs.jsonl", record)
            if record["reason"] in ENDS:
                return str(record["reason"])
            if record.get("exit_code") != 0 and not self.spec["keep_going"]:
                break
        return ""

    def drop_ballast(self) -> None:
        """The disk is full: free the reserved space for the records."""
        try:
            os.unlink(self.path("ballast"))
        except OSError:
            pass  # already used

    def finish(self, reason: str, message: str, code: str = "") -> None:
        """End all processes, examine the outputs, release the slots, write the exit record.

        Args:
            code: name of the operating system's error because of which the job was refused, '' for none.
        """
        self.hang.close()
        self.workers.end(self.beat, grace_s=0.0)
        self.workers.forget_all()
        self.workers.gpu.close()
        record = job_record(self.spec, self.records, reason, (message + self.end_container()).lstrip("; "))
        record.update(self.stopped_by(record["reason"]))
        if record["reason"] != "refused" and record.get("exit_code") != 0:
            record["oom"], record["oom_named"] = oom.killed(self.ooms, self.workers.seen), oom.is_named()
            if self.room < DISK_FULL:
                self.disk_full = True
                record["message"] += f"; the disk of {self.spec['root']} is full"
        if code and record["reason"] == "refused":
            record["errno"] = code
        record["disk_full"] = self.disk_full
        self.before.end()
        opened_files.merge(self.folder)
        root, since = self.spec["root"], self.since_ns
        record["outputs"] = []
        if self.records and not reason:
            self.probe()
        if self.probes:
            names = sorted({name for one in self.probes for name in one})
            record["probes"] = {name: [one[name] for one in self.probes if name in one] for name in names}
        if self.records:
            record["outputs"], problems = expected(root, self.spec["expects"], since, self.beat)
            record["message"] = (record["message"] + problems).lstrip("; ")
        paths = sorted({path for pattern in self.spec["artefacts"] for path in matches(root, pattern)})
        listed = json.dumps([examine(root, path, since, self.beat) for path in paths])
        try:
            save(self.path("artefacts.json"), listed)
        except OSError:
            self.drop_ballast()
            try:
                save(self.path("artefacts.json"), listed)
            except OSError as error:
                record["message"] += f"; artefacts not listed: {error.strerror}"
        for slot in self.slots:
            os.close(slot)
        write_record(self.folder, record, self.room)


def share_log(log: str, wanted: str) -> None:
    """Link the log under the name that the suite expects; an existing file of that name is an earlier log and
    is deleted."""
    if not wanted:
        return
    os.makedirs(os.path.dirname(wanted), exist_ok=True)
    if os.path.lexists(wanted) and not os.path.samefile(log, wanted):
        os.unlink(wanted)
    if not os.path.lexists(wanted):
        try:
            os.link(log, wanted)
        except OSError:
            os.symlink(log, wanted)
