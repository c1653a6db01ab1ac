"""Processes of one job: found in any session or cgroup, sampled, and ended."""

from __future__ import annotations

import os
import resource
import time
from typing import AbstractSet, Callable

from .cgroup import Group
from .files import Json
from .gpu import Gpu
from .membership import RecordedProcesses, job_processes
from .observer import Observer
from .processes import Proc, do_nothing, end_all, scan
from .ranks import RankEnds, Servers, rank_of, world_of

FOREIGN_S = 2.0


class Workers:
    """All processes that the runner's commands started, whether still their descendants or not.

    Attributes:
        statuses: pid -> wait status of the ended children, including adopted orphans.
        seen: every pid that ever belonged to the job.
        helpers: the runner's own children, which do not belong to the job.
        group: the control group of the commands, if the node permits one.
        world: the largest world size that a launcher set for a process of the current command; 0 for none.
        peak, gpu_peak: rank -> peak memory of the current command so far, bytes; 'total' is the peak of the
            sum.
    """

    def __init__(self, folder: str, spec: Json) -> None:
        self.spec, self.gpu = spec, Gpu()
        self.on_file = RecordedProcesses(folder)
        self.group: Group | None = None
        self.statuses: dict[int, int] = {}
        self.seen: set[int] = set()
        self.helpers: set[int] = set()
        self.strangers: set[int] = set()
        self.strange = 0.0  # until when the list of other processes is valid, for a job with a container
        self.ends, self.observer, self.servers = RankEnds(), Observer(spec), Servers(folder, spec)
        self.peak: dict[str, int] = {}
        self.gpu_peak: dict[str, int] = {}
        self.world = 0

    def forget(self) -> None:
        """Reset for a new command."""
        self.statuses, self.peak, self.gpu_peak, self.ends = {}, {}, {}, RankEnds()
        self.world = 0
        self.servers.forget()
        self.observer.begin()
        self.gpu.own.clear()

    def forget_all(self) -> None:
        """Delete the list of processes and the control group after the job, unless processes are left."""
        if not self.find():
            self.on_file.forget()
            if self.group:
                self.group.close()

    def reap(self) -> None:
        """Record ended children."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            self.statuses[pid] = status
            self.seen |= {pid} - self.helpers
            self.helpers.discard(pid)
            # A command may end before its first sample: its largest process then counts (in KiB; it started as
            # a copy of this process, so a smaller number is meaningless).
            if usage.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
                self.peak["total"] = max(self.peak.get("total", 0), usage.ru_maxrss * 1024)

    def find(self, skip: AbstractSet[int] = frozenset()) -> list[Proc]:
        """Return the job's living processes; those in `skip` are not inspected."""
        self.reap()
        table = list(scan({os.getpid()} | self.gpu.pids | self.helpers | skip))
        ours = job_processes(table, os.getpid(), self.spec, self.group.pids() if self.group else frozenset())
        self.on_file.keep(ours)
        pids = {proc.pid for proc in ours}
        self.strangers = set(skip) | ({proc.pid for proc in table} - pids)
        self.seen |= pids
        return ours

    def sample(self, leg: str) -> Json | None:
        """Return memory, CPU seconds and GPU use by rank; None without processes. A process known to be
        another's is not checked again."""
        alive = set(os.listdir("/proc"))
        # Except with a container: its processes descend from the engine, and join the job with a later exec.
        known = self.strangers if not self.spec.get("container") or time.monotonic() < self.strange else set()
        procs = self.find({pid for pid in known if str(pid) in alive})
        if not known:
            self.strange = time.monotonic() + FOREIGN_S
        self.ends.learn(procs)
        self.servers.learn(procs)
        self.observer.learn(procs)
        if not procs:
            return None
        apps, gpus = self.gpu.read()
        self.gpu.learn({proc.pid: rank_of(proc) for proc in procs})
        rss: dict[str, int] = {}
        gpu: dict[str, int] = {}
        for proc in procs:
            rank = rank_of(proc)
            self.world = max(self.world, world_of(proc))
            rss[rank] = rss.get(rank, 0) + proc.rss
            if proc.pid in apps:
                gpu[rank] = gpu.get(rank, 0) + apps[proc.pid]
        total, cpu = sum(rss.values()), round(sum(proc.cpu for proc in procs), 2)
        for peak, now in ((self.peak, dict(rss, total=total)), (self.gpu_peak, gpu)):
            peak.update({rank: max(size, peak.get(rank, 0)) for rank, size in now.items()})
        line = {"t": time.time(), "leg": leg, "rss": rss, "total": total, "cpu_s": cpu, "procs": len(procs)}
        return dict(line, gpu=gpu, gpus=gpus) if self.gpu.readers else line

    def end(self, meanwhile: Callable[[], None], *, grace_s: float) -> dict[int, str]:
        """End all remaining processes; return pid -> last signal sent. `meanwhile` is called repeatedly."""

        def find() -> list[Proc]:
            meanwhile()
            return self.find()

        kill = self.group.kill if self.group else do_nothing
        return end_all(find, grace_s=grace_s, kill_after_s=self.spec["kill_after_s"], kill=kill)
