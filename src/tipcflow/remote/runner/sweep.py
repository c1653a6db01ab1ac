"""Finds the processes of tipcflow on this node, and ends those whose job has ended."""

from __future__ import annotations

import glob
import os
import time
from typing import Iterable

from . import container
from .cgroup import NAME, group_of
from .files import Json, describe, job_folder, job_id, load, locked, request_stop
from .helpers import end_helpers, helpers
from .membership import PROCESSES_FILE, OrphanedJob, recorded_pids
from .processes import MARK_GUARD, Proc, command_of, end_all, scan, user_of
from .slots import host_slots

RUNNING_STATES = ("staging", "staged", "running")


def is_runner(proc: Proc) -> bool:
    """Return whether the process is a runner's daemon, the only process with this mark."""
    return proc.var("TIPCFLOW_RUNNER") == "1"


def describe_process(proc: Proc, job: str) -> Json:
    """Describe a process for users."""
    return {
        "pid": proc.pid, "ppid": proc.ppid, "job": job, "node": proc.var("TIPCFLOW_NODE"),
        "user": user_of(proc.pid), "runner": is_runner(proc), "cmdline": command_of(proc.pid), "rss": proc.rss,
    }  # fmt: skip


def folders(workspace: str, name: str) -> list[str]:
    """Return job folders that contain a file of that name."""
    return sorted(
        map(os.path.dirname, glob.glob(os.path.join(glob.escape(workspace), "jobs", "*", "*", "*", name)))
    )


def owners(workspace: str, table: Iterable[Proc]) -> dict[int, str]:
    """Return pid -> job: by marks, by the list of its runner, by control group; children follow their parent."""
    table = [proc for proc in table if not proc.var(MARK_GUARD)]
    found: dict[int, str] = {}
    for folder in sorted({*folders(workspace, PROCESSES_FILE), *folders(workspace, NAME)}):
        spec, group = load(os.path.join(folder, "job.json")), group_of(folder)
        if spec:
            pids = recorded_pids(folder, table) | (group.pids() if group else set())
            found.update({pid: job_id(spec) for pid in pids})
    for proc in table:
        if proc.var("TIPCFLOW_WORKSPACE") == workspace:
            found[proc.pid] = proc.var("TIPCFLOW_JOB")
    before = -1
    while len(found) != before:
        before = len(found)
        found.update(
            {proc.pid: found[proc.ppid] for proc in table if proc.ppid in found and proc.pid not in found}
        )
    there = {proc.pid for proc in table}
    return {pid: job for pid, job in found.items() if pid in there}


def survey(workspace: str) -> Json:
    """Return processes of this workspace's jobs, helpers, job folders with their state, and holders of the
    host's slots."""
    table = list(scan({os.getpid()}))
    known = owners(workspace, table)
    processes = [describe_process(proc, known[proc.pid]) for proc in table if proc.pid in known]
    jobs = []
    for folder in folders(workspace, "job.json"):
        spec, state = load(os.path.join(folder, "job.json")), describe(folder)
        if spec:
            jobs.append({"job": job_id(spec), "folder": folder, "state": state["state"], "pid": state["pid"]})
    return {"processes": processes, "jobs": jobs, "helpers": helpers(workspace, table), "host": host_slots()}


class Reaping:
    """Finds the processes that may be ended.

    Attributes:
        alive: running jobs, which are left alone unless named.
        seen: pid -> description of every process found.
    """

    def __init__(self, workspace: str, job: str, alive: set[str], named: set[str]) -> None:
        self.workspace, self.job, self.alive, self.named = workspace, job, alive, named
        self.seen: dict[int, Json] = {}
        self.jobs: dict[tuple[int, int], str] = {}

    def find(self) -> list[Proc]:
        """Return processes of ended jobs; a process once found stays in the result, even if its parent ends
        first."""
        table = list(scan({os.getpid()}))
        known = owners(self.workspace, table)
        # A runner that started after the survey is not a leftover, and neither is its job.
        self.alive |= {known[proc.pid] for proc in table if proc.pid in known and is_runner(proc)} - self.named
        found = []
        for proc in table:
            name = known.get(proc.pid) or self.jobs.get((proc.pid, proc.start))
            if name is None or (name in self.alive and name not in self.named) or self.job not in ("", name):
                continue
            found.append(proc)
            self.jobs[proc.pid, proc.start] = name
            self.seen.setdefault(proc.pid, describe_process(proc, name))
        return found

    def kill(self) -> None:
        """Send SIGKILL to the control groups of all jobs found."""
        for job in set(self.jobs.values()) - {""}:
            group = group_of(job_folder(self.workspace, job))
            if group:
                group.kill()

    def forget(self) -> None:
        """Remove groups and lists of the jobs found, because no process is left."""
        for job in set(self.jobs.values()) - {""}:
            OrphanedJob({}, job_folder(self.workspace, job)).forget()


def reap(workspace: str, job: str, living: bool, by: str = "controller") -> Json:
    """End the processes of jobs that have ended; of running jobs only if `job` names one, or all with `living`.

    Args:
        by: initiator: `stopped_by` of their exit records.
    """
    before = survey(workspace)
    alive = {item["job"] for item in before["jobs"] if item["state"] in RUNNING_STATES}
    alive |= {item["job"] for item in before["processes"] if item["runner"]}
    named = alive if living else alive & {job}
    for name in named:
        stop_job(job_folder(workspace, name), by)
    reaping = Reaping(workspace, job, alive, named)
    sent = end_all(reaping.find, grace_s=0.0, kill_after_s=3.0, kill=reaping.kill)
    containers = container.sweep(workspace, alive - named, job)
    left = {proc.pid for proc in reaping.find()}
    if not left:
        reaping.forget()
    ended, stayed = end_helpers(workspace, job)
    return {
        "stopped": sorted(named),
        "killed": [dict(reaping.seen[pid], signal=name) for pid, name in sorted(sent.items()) if pid not in left],
        "containers": containers,
        "helpers": ended,
        "left": [reaping.seen[pid] for pid in sorted(left)] + stayed,
    }


def reap_helpers(workspace: str) -> Json:
    """End abandoned commands of controllers."""
    ended, left = end_helpers(workspace, "")
    return {"helpers": ended, "left": left}


def stop_job(folder: str, by: str) -> None:
    """Request the end of a job from its runner, and wait for it within the job's limits."""
    spec = load(os.path.join(folder, "job.json"))
    if not spec:
        return
    request_stop(folder, "reaped", by)
    until = time.monotonic() + spec["kill_after_s"] + 3.0
    while locked(folder) and time.monotonic() < until:
        time.sleep(0.02)
