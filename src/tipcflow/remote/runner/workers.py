"""The processes of one job: found wherever they are, sampled, and ended."""

from __future__ import annotations

import os
import resource
import time
from typing import AbstractSet, Callable

from .cgroup import Group
from .files import Json
from .gpu import Gpu
from .kin import Seen, family
from .processes import Proc, end_all, nothing, scan
from .rank_ends import RankEnds
from .ranks import rank_of, world_of

STRANGE_S = 2.0


class Workers:
    """Everything that the runner's commands started, whether it is still their child or not.

    Attributes:
        statuses: pid -> wait status of the children that have ended, adopted orphans included.
        seen: every pid that ever belonged to the job.
        helpers: the runner's own children, which are none of the job.
        group: the control group that the commands run in, where the node allows one.
        world: the largest world size that a launcher told a process of the current command; 0 for none.
        peak, gpu_peak: rank -> most memory of the current command so far, bytes; 'total' is the most of the sum.
    """

    def __init__(self, folder: str, spec: Json) -> None:
        self.spec, self.gpu = spec, Gpu()
        self.on_file = Seen(folder)
        self.group: Group | None = None
        self.statuses: dict[int, int] = {}
        self.seen: set[int] = set()
        self.helpers: set[int] = set()
        self.strangers: set[int] = set()
        self.strange = 0.0  # until when strangers are believed to be some, with a container
        self.ends = RankEnds()
        self.peak: dict[str, int] = {}
        self.gpu_peak: dict[str, int] = {}
        self.world = 0

    def forget(self) -> None:
        """Begin with a new command."""
        self.statuses, self.peak, self.gpu_peak, self.ends = {}, {}, {}, RankEnds()
        self.world = 0

    def forget_all(self) -> None:
        """The job has ended: unless processes are left, its list of processes is no longer needed."""
        if not self.find():
            self.on_file.forget()
            if self.group:
                self.group.close()

    def reap(self) -> None:
        """Take note of children that have ended."""
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
            # A command may be over before its first sample: then its largest process counts (in KiB; it began as
            # a copy of this process, so a smaller number says nothing).
            if usage.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
                self.peak["total"] = max(self.peak.get("total", 0), usage.ru_maxrss * 1024)

    def find(self, skip: AbstractSet[int] = frozenset()) -> list[Proc]:
        """The job's living processes; those in `skip` are not looked at."""
        self.reap()
        table = list(scan({os.getpid()} | self.gpu.pids | self.helpers | skip))
        ours = family(table, os.getpid(), self.spec, self.group.pids() if self.group else frozenset())
        self.on_file.keep(ours)
        pids = {proc.pid for proc in ours}
        self.strangers = set(skip) | ({proc.pid for proc in table} - pids)
        self.seen |= pids
        return ours

    def sample(self, leg: str) -> Json | None:
        """Memory, CPU seconds and GPU use by rank; None when nothing runs. What was a stranger stays one."""
        alive = set(os.listdir("/proc"))
        # But for a container's processes: they descend from the engine, and become ours with a later exec.
        known = self.strangers if not self.spec.get("container") or time.monotonic() < self.strange else set()
        procs = self.find({pid for pid in known if str(pid) in alive})
        if not known:
            self.strange = time.monotonic() + STRANGE_S
        self.ends.learn(procs)
        if not procs:
            return None
        apps, gpus = self.gpu.read()
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
        """End all that is still there; pid -> last signal sent. `meanwhile` is called again and again."""

        def find() -> list[Proc]:
            meanwhile()
            return self.find()

        kill = self.group.kill if self.group else nothing
        return end_all(find, grace_s=grace_s, kill_after_s=self.spec["kill_after_s"], kill=kill)
