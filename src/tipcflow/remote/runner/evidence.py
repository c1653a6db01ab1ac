"""Evidence of a running job that hangs or is late: collected on its node and stored in its folder."""

from __future__ import annotations

import json
import os
import re
import time
from typing import Callable

from .files import Json, describe, job_id, load, log_name, save
from .kmsg import kernel_messages
from .membership import job_processes
from .processes import Proc, scan
from .programs import find_program, run_program
from .progress import last_line
from .ranks import rank_of, rank_of_log
from .sockets import sockets
from .stacks import stacks

MAX_BYTES = 240 * 1024  # limit of the whole JSON, bytes; complete stacks are in files
MAX_STACK = 6 * 1024  # limit of one process's stacks in the JSON, characters
PROCESSES, THREADS = 64, 24
RUNNING_STATES = ("staging", "staged", "running")
RUNNER_S = 20.0  # time limit for the runner's own evidence, while another process requests it


def logs_of(folder: str, spec: Json, beat: Json, procs: list[Proc]) -> list[Json]:
    """Return every log with its rank, progress and last line, longest silence first."""
    found = []
    for name, known in (beat.get("progress") or {}).items():
        path = log_path(folder, spec, beat, name)
        found.append(dict(known, log=name, rank=rank_of_log(procs, path), last_line=last_line(path)))
    return sorted(found, key=lambda one: -one["idle_s"])


def log_path(folder: str, spec: Json, beat: Json, name: str) -> str:
    """Return the path of a log that the heartbeat names."""
    if name == log_name(beat.get("leg", "")) or not os.path.exists(os.path.join(spec["root"], name)):
        return os.path.join(folder, name)
    return os.path.join(spec["root"], name)


def kernel_value(path: str) -> str:
    """Return the text of a kernel file with one value, '' if it cannot be read."""
    try:
        with open(path, "rb") as handle:
            return handle.read(4096).decode("utf-8", "replace").replace("\0", " ").strip()
    except OSError:
        return ""


def thread_state(base: str) -> str:
    """Return name, state and kernel wait channel of a process or thread, in one line."""
    state = re.search(r"^State:\s+(.*)$", kernel_value(f"{base}/status"), re.M)
    words = [kernel_value(f"{base}/comm"), state.group(1) if state else "", kernel_value(f"{base}/wchan")]
    call = kernel_value(f"{base}/syscall").split(" ")[0]
    return ", ".join(word for word in words if word not in ("", "0")) + (f", system call {call}" if call else "")


def process(proc: Proc) -> Json:
    """Return the kernel's data about a process."""
    base = f"/proc/{proc.pid}"
    try:
        tasks = sorted(os.listdir(f"{base}/task"), key=int)
    except OSError:
        tasks = []
    return {
        "pid": proc.pid, "ppid": proc.ppid, "rank": rank_of(proc), "rss": proc.rss, "cpu_s": round(proc.cpu, 2),
        "cmdline": kernel_value(f"{base}/cmdline")[:200],
        "state": thread_state(base),
        "threads": [f"{task}: {thread_state(f'{base}/task/{task}')}" for task in tasks[1 : THREADS + 1]],
        "count": len(tasks),
        "kernel": kernel_value(f"{base}/stack").splitlines()[:12],
    }  # fmt: skip


def machine(spec: Json) -> Json:
    """Return load, memory, and free space where a step may need it, in bytes."""
    found: Json = {"load": [round(load, 2) for load in os.getloadavg()], "disk": {}}
    memory = dict(re.findall(r"^(Mem\w+|Swap\w+|Shmem):\s+(\d+) kB$", kernel_value("/proc/meminfo"), re.M))
    found["memory"] = {name: int(size) * 1024 for name, size in memory.items()}
    for place in (spec["root"], spec["workspace"], "/dev/shm", "/tmp"):
        try:
            disk = os.statvfs(place)
        except OSError:
            continue
        found["disk"][place] = {"free": disk.f_bavail * disk.f_frsize, "size": disk.f_blocks * disk.f_frsize}
    return found


def gpus() -> str:
    """Return the output of nvidia-smi, '' without nvidia-smi."""
    path = find_program("nvidia-smi")
    return run_program([path], 5.0)[1] if path else ""


class Evidence:
    """One collection; completed parts are kept if the rest takes too long."""

    def __init__(self, folder: str, spec: Json, why: str, message: str) -> None:
        self.folder, self.spec = folder, spec
        report = describe(folder)
        runner = (
            report["pid"] if report["state"] in RUNNING_STATES else -1
        )  # the pid of a dead runner may have been reused
        self.beat: Json = report["heartbeat"] or {}
        found = [proc for proc in job_processes(scan({os.getpid()}), runner, spec) if proc.pid != runner]
        self.ranks = {proc.pid: rank_of(proc) for proc in found}
        self.procs = sorted(found, key=lambda proc: (not rank_of(proc), not self.main(proc), proc.pid))
        self.found: Json = {
            "schema_version": 1, "job": job_id(spec), "node": spec["node"], "t": time.time(),
            "why": why, "message": message, "state": report["state"], "complete": False,
            "logs": [], "processes": [], "sockets": [], "kernel": [], "gpus": "", "machine": {}, "files": [],
        }  # fmt: skip

    def main(self, proc: Proc) -> bool:
        """Return whether the process is its rank's training process and not a data loader, which carries the
        rank, too."""
        return bool(self.ranks[proc.pid]) and self.ranks.get(proc.ppid) != self.ranks[proc.pid]

    def take(self, name: str, function: Callable[[], object]) -> None:
        """Collect one part; if it fails, store the error instead."""
        try:
            self.found[name] = function()
        except Exception as error:
            self.found.setdefault("failed", {})[name] = repr(error)
        self.keep()

    def keep(self) -> None:
        """Write the evidence collected so far; a full disk must not prevent that it is printed."""
        for one, name in ((one, name) for name in ("threads", "stack") for one in self.found["processes"][::-1]):
            if len(json.dumps(self.found)) <= MAX_BYTES:
                break
            one.pop(name, None)  # the most important processes come first
        try:
            save(os.path.join(self.folder, "evidence.json"), json.dumps(self.found))
        except OSError as error:
            self.found.setdefault("failed", {})["evidence.json"] = error.strerror

    def file(self, name: str, text: str) -> str:
        """Store a text next to the JSON; return its name relative to the job folder, '' if it could not be
        stored."""
        try:
            os.makedirs(os.path.join(self.folder, "evidence"), exist_ok=True)
            save(os.path.join(self.folder, "evidence", name), text)
        except OSError:
            return ""
        self.found["files"] = sorted({*self.found["files"], f"evidence/{name}"})
        return f"evidence/{name}"

    def collect(self) -> Json:
        """Collect everything, first the data that later steps may change."""
        spec, procs = self.spec, self.procs
        self.take("logs", lambda: logs_of(self.folder, spec, self.beat, procs))
        self.take("processes", lambda: [dict(process(one), main=self.main(one)) for one in procs[:PROCESSES]])
        self.take("sockets", lambda: sockets(procs, self.ranks))
        self.take("machine", lambda: machine(spec))
        self.take("kernel", kernel_messages)
        self.take("stacks", self.python)
        self.take("gpus", self.gpus)
        self.found["complete"] = True
        self.keep()
        return self.found

    def python(self) -> int:
        """Add Python stacks to their processes; return the number of processes with stacks."""
        logs = [log_path(self.folder, self.spec, self.beat, one["log"]) for one in self.found["logs"]]
        known = stacks(self.procs, logs)
        for one in self.found["processes"]:
            if one["pid"] in known:
                how, text = known[one["pid"]]
                name = self.file(f"stack.{one['pid']}.txt", text)
                one.update(stack_by=how, stack=text[:MAX_STACK], stack_file=name)
        return len(known)

    def gpus(self) -> str:
        """Return nvidia-smi's table, complete in a file."""
        text = gpus()
        if text:
            self.file("nvidia-smi.txt", text)
        return text[:MAX_STACK]


def collects_itself(folder: str) -> bool:
    """Return whether the runner collects evidence of a hang: not while its peers may make progress."""
    beat = describe(folder)["heartbeat"] or {}
    return bool(beat.get("hang")) and not beat.get("hang_unsure")


def evidence(folder: str, why: str, message: str) -> Json:
    """Collect the evidence of a job, or return the evidence that its runner has collected because of a hang.

    Args:
        why: `hang` or `deadline` from its runner; '' for a controller, which also gets the runner's
            evidence.
        message: the runner's message.
    """
    spec = load(os.path.join(folder, "job.json"))
    if not spec:
        return dict(describe(folder), message=f"{folder}/job.json is missing or not JSON")
    if why:
        return Evidence(folder, spec, why, message).collect()
    until = time.monotonic() + RUNNER_S
    while collects_itself(folder) and time.monotonic() < until:
        known = load(os.path.join(folder, "evidence.json")) or {}
        if known.get("complete") and known.get("why") == "hang":
            return dict(known)
        time.sleep(0.05)
    report = describe(folder)
    if report["state"] in ("ended", "absent"):
        known = load(os.path.join(folder, "evidence.json"))
        return known or dict(report, message="job has ended; no evidence was collected")
    return Evidence(folder, spec, "requested", "").collect()
