"""The daemon: takes one job from its locks to its exit record."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from typing import AbstractSet

from . import oom
from .files import PIECE, Json, load, log_name, save, touch_lease
from .gpu import Gpu
from .outputs import examine, expected, matches
from .processes import Proc, end_all, family, scan
from .slots import Refused, take_cpus, take_slot
from .start import FOREIGN, refused

GRACE_S = 0.3  # what a finished command's helpers (tee, a launcher's workers) may take to end by themselves
TICK_S, TICK_STAGED_S = 0.05, 0.01
ENDS = ("stopped", "deadline", "lease_expired")
DISK_FULL = 4 * 1024 * 1024  # less room than this was the disk's fault


class Job:
    """One job on this node."""

    def __init__(self, folder: str, spec: Json, lock: int, wake: int) -> None:
        self.folder, self.spec, self.lock, self.wake = folder, spec, lock, wake
        self.slots: list[int] = []
        self.state, self.leg, self.why, self.signal = "staging", "", "", 0
        self.statuses: dict[int, int] = {}  # pid -> wait status of every child, adopted ones too
        self.seen: set[int] = set()
        self.strangers: set[int] = set()
        self.peak: dict[str, int] = {}
        self.gpu_peak: dict[str, int] = {}
        self.begin = self.next_beat = self.next_sample = 0.0
        self.lease_ns, self.heard = 0, time.monotonic()
        self.room, self.ooms, self.since_ns = 1 << 62, oom.kills(), 0
        self.records: list[Json] = []
        self.gpu = Gpu()

    def path(self, name: str) -> str:
        """A file of the job folder."""
        return os.path.join(self.folder, name)

    def prepare(self) -> None:
        """Everything that can refuse the job. First what a full disk could deny later: room for the records."""
        os.makedirs(self.path("logs"), exist_ok=True)
        for name in ("exit.json.reserved", "ballast"):
            with open(self.path(name), "wb") as handle:
                handle.write(b" " * PIECE)
        os.ftruncate(self.lock, 0)
        os.pwrite(self.lock, b"%d" % os.getpid(), 0)
        touch_lease(self.folder)
        for place in (self.spec["workspace"], self.spec["root"]):
            disk, least = os.statvfs(place), self.spec["min_free_bytes"]
            if disk.f_bavail * disk.f_frsize < least:
                raise Refused(f"{place} has {disk.f_bavail * disk.f_frsize} bytes free, the step needs {least}")
        for number in sorted(self.spec["slots"]):
            self.slots.append(take_slot(self.spec, number))
        take_cpus(self.spec["cpus"])

    def tell(self, state: str) -> None:
        """Enter a state; it is visible at once."""
        self.state, self.next_beat = state, 0.0
        self.beat()

    def beat(self) -> None:
        """Rewrite the heartbeat once a second; a full disk is survived and remembered."""
        if time.monotonic() < self.next_beat:
            return
        self.next_beat = time.monotonic() + 1.0
        beat = {
            "t": time.time(),
            "state": self.state,
            "pid": os.getpid(),
            "leg": self.leg,
            "log_size": 0,
            "log_t": 0,
        }
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

    def mine(self, skip: AbstractSet[int] = frozenset()) -> list[Proc]:
        """The job's living processes; children that have ended are reaped first."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            self.statuses[pid] = status
            # A command may be over before its first sample: then its largest process counts (in KiB, and never
            # less than ours: it began as a copy of this process).
            if usage.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
                self.peak["total"] = max(self.peak.get("total", 0), usage.ru_maxrss * 1024)
        self.seen.update(self.statuses)
        table = list(scan({os.getpid()} | self.gpu.pids | skip))
        ours = family(table, os.getpid(), self.spec)
        self.strangers = set(skip) | ({proc.pid for proc in table} - {proc.pid for proc in ours})
        self.seen.update(proc.pid for proc in ours)
        return ours

    def sample(self) -> None:
        """Append memory, CPU seconds and GPU use of the job's processes, by rank."""
        if time.monotonic() < self.next_sample:
            return
        self.next_sample = time.monotonic() + self.spec["sample_every_s"]
        alive = set(os.listdir("/proc"))
        apps, gpus = self.gpu.read()
        rss: dict[str, int] = {}
        gpu: dict[str, int] = {}
        procs = self.mine({pid for pid in self.strangers if str(pid) in alive})
        if not procs:
            return  # the command has just ended
        for proc in procs:
            rank = proc.var("PADDLE_TRAINER_ID") or proc.var("RANK")
            rss[rank] = rss.get(rank, 0) + proc.rss
            if proc.pid in apps:
                gpu[rank] = gpu.get(rank, 0) + apps[proc.pid]
        total, cpu = sum(rss.values()), round(sum(proc.cpu for proc in procs), 2)
        for peak, now in ((self.peak, dict(rss, total=total)), (self.gpu_peak, gpu)):
            peak.update({rank: max(size, peak.get(rank, 0)) for rank, size in now.items()})
        line = {"t": time.time(), "leg": self.leg, "rss": rss, "total": total, "cpu_s": cpu, "procs": len(procs)}
        if self.gpu.readers:
            line.update(gpu=gpu, gpus=gpus)
        self.append("samples.jsonl", line)

    def append(self, name: str, line: Json) -> bool:
        """Add a whole line, or nothing when the disk is full."""
        data = (json.dumps(line) + "\n").encode()
        try:
            with open(self.path(name), "ab", buffering=0) as handle:
                size = handle.tell()
                if handle.write(data) == len(data):
                    return True
                handle.truncate(size)
        except OSError:
            pass
        self.room = 0
        return False

    def end_reason(self) -> str:
        """Why the job has to end now, '' when it may go on."""
        now = time.monotonic()
        try:
            lease_ns = os.stat(self.path("lease")).st_mtime_ns
            if lease_ns != self.lease_ns:  # a change counts, not the time: clocks jump
                self.lease_ns, self.heard = lease_ns, now
        except OSError:
            pass
        if self.signal:
            self.why = f"the runner got {signal.Signals(self.signal).name}"
            return "stopped"
        if os.path.exists(self.path("stop")):
            with open(self.path("stop"), "rb") as handle:
                self.why = handle.read().decode("utf-8", "replace").strip() or "stopped"
            return "stopped"
        if self.begin and now - self.begin > self.spec["deadline_s"]:
            self.why = f"not done within {self.spec['deadline_s']:g} s"
            return "deadline"
        if now - self.heard > self.spec["lease_s"]:
            self.why = f"no controller was heard of for {self.spec['lease_s']:g} s"
            return "lease_expired"
        return ""

    def barrier(self) -> str:
        """Wait for `go`; the reason why it will not come, or ''."""
        self.tell("staged")
        until = time.monotonic() + self.spec["barrier_s"]
        while True:
            reason = self.end_reason()  # asked first: a stop wins over a go
            if reason or os.path.exists(self.path("go")):
                return reason
            if time.monotonic() > until:
                self.why = f"no go within {self.spec['barrier_s']:g} s"
                return "barrier_timeout"
            self.beat()
            time.sleep(TICK_STAGED_S)

    def wait(self, pid: int) -> str:
        """Until this child has ended, or the job has to end: the reason for that, or ''."""
        while pid not in self.statuses:
            if select.select([self.wake], [], [], TICK_S)[0]:
                os.read(self.wake, 4096)
                self.mine(self.strangers)
            reason = self.end_reason()
            if reason and pid not in self.statuses:
                return reason
            self.beat()
            self.sample()
        return ""

    def clear(self, grace_s: float) -> dict[int, str]:
        """End every process of the job that is still there; pid -> last signal sent."""

        def find() -> list[Proc]:
            self.beat()
            return self.mine()

        return end_all(find, grace_s=grace_s, kill_after_s=self.spec["kill_after_s"])

    def command(self, command: Json) -> Json:
        """Run one command to its end, and everything that it started to theirs."""
        self.leg, self.peak, self.gpu_peak = command["leg"], {}, {}
        root, started_at, begin = self.spec["root"], time.time(), time.monotonic()
        env = {name: value for name, value in os.environ.items() if name != "TIPCFLOW_RUNNER"}
        env.update({**self.spec["env"], **command["env"]})
        with open(self.path(log_name(self.leg)), "ab") as log:
            share_log(log.name, command["log"] and os.path.join(root, command["log"]))
            child = subprocess.Popen(
                ["/bin/bash", "-c", command["text"]], cwd=os.path.join(root, command["cwd"]),
                env={name: value for name, value in env.items() if value != ""},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self.next_beat = self.next_sample = 0.0
        reason = self.wait(child.pid)
        sent = self.clear(0.0 if reason else GRACE_S)
        child.returncode = status = self.statuses.get(child.pid, 0)
        values: Json = {"reason": reason or "exited", "message": self.why if reason else ""}
        if os.WIFSIGNALED(status):
            values["signal"] = os.WTERMSIG(status)
            if not reason:
                values.update(reason="signaled", message=f"ended by signal {os.WTERMSIG(status)}")
        elif child.pid in self.statuses:
            values["exit_code"] = os.WEXITSTATUS(status)
            if not reason and values["exit_code"]:
                values["message"] = f"exited with {values['exit_code']}"
        left = [proc.pid for proc in self.mine()]
        if left:
            values["message"] += f"; processes {left} outlived SIGKILL"
        ended = time.monotonic() - begin
        return dict(
            {key: self.spec[key] for key in ("run", "step", "attempt", "node")},
            schema_version=1, leg=self.leg, started_at=started_at, ended_at=started_at + ended, pid=child.pid,
            peak_rss_bytes=self.peak, peak_gpu_bytes=self.gpu_peak, killed=0 if reason else len(sent), **values,
        )  # fmt: skip

    def commands(self) -> str:
        """Run the commands one after the other; the reason why the job had to end before they had, or ''."""
        self.tell("running")
        try:
            with open(self.path("began"), "wb"):
                pass
            self.since_ns = os.stat(self.path("began")).st_mtime_ns
        except OSError:
            self.since_ns = time.time_ns() - 20_000_000  # a file's clock may be a few ticks behind
        self.begin = time.monotonic()
        for command in self.spec["commands"]:
            reason = self.end_reason()
            if reason:
                return reason
            try:
                record = self.command(command)
            except OSError as error:
                record = refused(self.spec, f"cannot start: {error.filename or '/bin/bash'}: {error.strerror}")
                record["leg"] = command["leg"]
            self.records.append(record)
            if not self.append("legs.jsonl", record):
                os.unlink(self.path("ballast"))
                self.append("legs.jsonl", record)
            if record["reason"] in ENDS:
                return str(record["reason"])
            if record.get("exit_code") != 0 and not self.spec["keep_going"]:
                break
        return ""

    def finish(self, reason: str, message: str) -> None:
        """Leave nothing running, look at the outputs, let the slots go, write the exit record."""
        self.clear(0.0)
        self.gpu.close()
        bad = [one for one in self.records if one.get("exit_code") != 0]
        chosen = (bad or self.records or [refused(self.spec, "")])[0 if bad else -1]
        record = dict(chosen, leg="", message=message, reason=reason or chosen["reason"], ended_at=time.time())
        if reason and chosen["reason"] != reason:  # it ended between two commands
            record = {key: value for key, value in record.items() if key not in ("exit_code", "signal")}
        if bad and not reason:
            count = f"{len(bad)} of {len(self.spec['commands'])} legs failed, the first: {chosen['leg']}: "
            record["message"] = (count if chosen["leg"] else "") + chosen["message"]
        if self.records:
            record.update(started_at=self.records[0]["started_at"], ended_at=self.records[-1]["ended_at"])
            record["killed"] = sum(one.get("killed", 0) for one in self.records)
        for key in ("peak_rss_bytes", "peak_gpu_bytes"):
            peaks = [one.get(key, {}) for one in self.records]
            record[key] = {
                rank: max(p.get(rank, 0) for p in peaks) for rank in sorted({r for p in peaks for r in p})
            }
        if record["reason"] != "refused" and record.get("exit_code") != 0:
            record["oom"] = oom.killed(self.ooms, self.seen)
            if self.room < DISK_FULL:
                record["message"] += f"; the disk of {self.spec['root']} is full"
        root, since = self.spec["root"], self.since_ns
        record["outputs"] = expected(root, self.spec["expects"], since) if self.records else []
        paths = sorted({path for pattern in self.spec["artefacts"] for path in matches(root, pattern)})
        try:
            save(self.path("artefacts.json"), json.dumps([examine(root, path, since) for path in paths]))
        except OSError as error:
            record["message"] += f"; artefacts not listed: {error.strerror}"
        for slot in self.slots:
            os.close(slot)
        self.write(record)

    def write(self, record: Json) -> None:
        """Put the exit record in place; its room was taken before the first command."""
        data, name = json.dumps(record).encode(), self.path("exit.json.reserved")
        if len(data) > PIECE and self.room < DISK_FULL:
            data = json.dumps(dict(record, outputs=[], message=record["message"] + "; outputs left out")).encode()
        with open(name, "r+b") as handle:
            handle.write(data)
            handle.truncate()
        os.rename(name, self.path("exit.json"))
        if os.path.exists(self.path("ballast")):
            os.unlink(self.path("ballast"))


def share_log(log: str, wanted: str) -> None:
    """Give the log the name, too, by which the suite knows it; an old log of that name is not ours."""
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


def adopt_orphans() -> None:
    """Become the parent of what a killed launcher leaves behind (PR_SET_CHILD_SUBREAPER)."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError) as error:
        sys.stderr.write(f"orphans are found by their marks alone: {error}\n")


def daemon(folder: str, lock: int, writer: int) -> None:
    """Run the job of this folder. `lock` is held; what is written to `writer` is why the job is refused."""
    os.set_inheritable(lock, False)
    os.set_inheritable(writer, False)
    adopt_orphans()
    reader, wake = os.pipe()
    os.set_blocking(wake, False)
    job = Job(folder, load(os.path.join(folder, "job.json")), lock, reader)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: setattr(job, "signal", number))
    reason = message = ""
    try:
        job.prepare()
        job.tell("staged" if job.spec["barrier"] else "running")
        job.gpu.start({name: value for name, value in os.environ.items() if not FOREIGN.fullmatch(name)})
        os.close(writer)
        writer = -1
        reason = (job.barrier() if job.spec["barrier"] else "") or job.commands()
        message = job.why if reason else ""
    except (Refused, OSError) as error:
        reason = "lost" if job.begin else "refused"
        message = str(error)
    except BaseException:
        traceback.print_exc()
        reason = "lost" if job.begin else "refused"
        message = "the runner failed: " + traceback.format_exc().strip().splitlines()[-1]
    try:
        job.finish(reason, message)
    finally:
        if writer >= 0:
            os.write(writer, message.encode("utf-8", "surrogateescape"))
