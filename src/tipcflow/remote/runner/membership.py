"""Membership of processes in a job: by marks, descent, control group, and the list of its runner."""

from __future__ import annotations

import json
import os
import signal
from typing import AbstractSet, Callable, Iterable

from .cgroup import Group, group_of
from .files import Json, load, save
from .processes import MARK_GUARD, Proc, marks, scan

PROCESSES_FILE = "processes.json"


def boot_id() -> str:
    """Return the kernel's id of the current boot."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as handle:
            return handle.read().strip()
    except OSError:
        return ""


class RecordedProcesses:
    """Stores a job's processes, so that they are found after the death of its runner: a process can clear its
    environment, but not change its pid and start time."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, PROCESSES_FILE)
        self.recorded: set[tuple[int, int]] = set()

    def keep(self, procs: Iterable[Proc]) -> None:
        """Rewrite the list if one of these is missing."""
        now = {(proc.pid, proc.start) for proc in procs}
        if now <= self.recorded:
            return
        try:
            save(self.path, json.dumps({"boot": boot_id(), "processes": sorted(now)}))
            self.recorded = now
        except OSError:
            pass  # full disk: marks and descent remain

    def forget(self) -> None:
        """Delete the list, because no process is left."""
        try:
            os.unlink(self.path)
        except OSError:
            pass


def recorded_pids(folder: str, table: Iterable[Proc]) -> set[int]:
    """Return the pids of the table that a job's runner has recorded, and all in their sessions: each command
    has its own."""
    report = load(os.path.join(folder, PROCESSES_FILE))
    if not isinstance(report, dict) or report.get("boot") != boot_id():
        return set()
    known = {tuple(one) for one in report["processes"]}
    alive = [proc for proc in table if (proc.pid, proc.start) in known]
    sessions = {proc.sid for proc in alive} - {0}  # 0 is a session outside this pid namespace
    return {proc.pid for proc in alive} | {proc.pid for proc in table if proc.sid in sessions}


def with_descendants(table: Iterable[Proc], is_member: Callable[[Proc], bool]) -> list[Proc]:
    """Return the matching processes of the table and their descendants; guards belong to no job."""
    ours: list[Proc] = []
    rest: list[Proc] = []
    for proc in table:
        if not proc.var(MARK_GUARD):
            (ours if is_member(proc) else rest).append(proc)
    pids, before = {proc.pid for proc in ours}, -1
    while len(pids) != before:
        before = len(pids)
        for proc in [proc for proc in rest if proc.ppid in pids and proc.pid not in pids]:
            pids.add(proc.pid)
            ours.append(proc)
    return ours


def has_variables(proc: Proc, wanted: dict[str, str]) -> bool:
    """Return whether a process has these variables in its environment."""
    return b"TIPCFLOW_" in proc.env and all(proc.var(name) == value for name, value in wanted.items())


def job_processes(
    table: Iterable[Proc], parent: int, spec: Json, known: AbstractSet[int] = frozenset()
) -> list[Proc]:
    """Return the processes of the table that descend from `parent`, carry the job's marks, or are `known` by
    their pid."""
    wanted = marks(spec)
    return with_descendants(
        table, lambda proc: proc.ppid == parent or proc.pid in known or has_variables(proc, wanted)
    )


class OrphanedJob:
    """Finds and kills the remaining processes of a job whose runner is dead.

    Args:
        wanted: variables that its processes carry.
        folder: of the job.
        parent: a process whose children also belong to the job.
    """

    def __init__(self, wanted: dict[str, str], folder: str, *, parent: int = -1) -> None:
        self.wanted, self.folder, self.parent = wanted, folder, parent
        self.group: Group | None = group_of(folder)
        self.killed: set[tuple[int, int]] = set()

    def find(self) -> list[Proc]:
        """Return the job's processes except this one. A process once found stays in the result, even if the
        parent that led to it ends."""
        table = list(scan({os.getpid()}))
        known: AbstractSet[int] = recorded_pids(self.folder, table) | (self.group.pids() if self.group else set())

        def is_member(proc: Proc) -> bool:
            """Whether the job started it: recorded, a child, an earlier match, or with the job's variables."""
            return (
                proc.pid in known
                or proc.ppid == self.parent
                or (proc.pid, proc.start) in self.killed
                or has_variables(proc, self.wanted)
            )

        found = with_descendants(table, is_member)
        self.killed |= {(proc.pid, proc.start) for proc in found}
        return found

    def kill(self) -> None:
        """Send SIGKILL to all: the kernel ends a control group atomically, however fast it forks."""
        if self.group:
            self.group.kill()
        for proc in self.find():
            try:
                os.kill(proc.pid, signal.SIGKILL)
            except OSError:
                pass

    def forget(self) -> None:
        """Remove the group and the list, because no process is left."""
        if self.group:
            self.group.close()
        RecordedProcesses(self.folder).forget()
