"""Who of ours is on this node, and ending those whose job is over."""

from __future__ import annotations

import glob
import os
import time

from . import container
from .files import Json, ask_to_stop, describe, job_folder, load, locked
from .processes import Proc, end_all, marked
from .slots import host_slots

LIVING = ("staging", "staged", "running")


def is_runner(proc: Proc) -> bool:
    """Whether it is a runner's daemon: it alone carries this mark."""
    return proc.var("TIPCFLOW_RUNNER") == "1"


def told(proc: Proc) -> Json:
    """A process as a person reads it."""
    try:
        with open(f"/proc/{proc.pid}/cmdline", "rb") as handle:
            command = handle.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()[:200]
    except OSError:
        command = ""
    return {
        "pid": proc.pid, "ppid": proc.ppid, "job": proc.var("TIPCFLOW_JOB"), "node": proc.var("TIPCFLOW_NODE"),
        "runner": is_runner(proc), "cmdline": command, "rss": proc.rss,
    }  # fmt: skip


def survey(workspace: str) -> Json:
    """Processes with this workspace's mark, job folders with their state, and who holds slots of the host."""
    processes = [told(proc) for proc in marked({"TIPCFLOW_WORKSPACE": workspace})()]
    jobs = []
    for path in sorted(glob.glob(os.path.join(glob.escape(workspace), "jobs", "*", "*", "*", "job.json"))):
        spec, known = load(path), describe(os.path.dirname(path))
        if spec:
            job = f"{spec['run']}/{spec['step']}/{spec['attempt']}"
            jobs.append(
                {"job": job, "folder": os.path.dirname(path), "state": known["state"], "pid": known["pid"]}
            )
    return {"processes": processes, "jobs": jobs, "host": host_slots()}


def reap(workspace: str, job: str, living: bool, by: str = "controller") -> Json:
    """End the processes of jobs that are over; living jobs only when `job` names one, or all with `living`.

    Args:
        by: who ends them: `stopped_by` of their exit records.
    """
    before = survey(workspace)
    alive = {item["job"] for item in before["jobs"] if item["state"] in LIVING}
    alive |= {item["job"] for item in before["processes"] if item["runner"]}
    named = alive if living else alive & {job}
    for name in named:
        stop_job(job_folder(workspace, name), by)
    seen: dict[int, Json] = {}

    def victims() -> list[Proc]:
        found = []
        for proc in marked({"TIPCFLOW_WORKSPACE": workspace})():
            name = proc.var("TIPCFLOW_JOB")
            # A runner that began after the survey is no leftover, and neither is its job.
            if is_runner(proc) and name not in named:
                alive.add(name)
            if (name not in alive or name in named) and job in ("", name):
                found.append(proc)
                seen.setdefault(proc.pid, told(proc))
        return found

    sent = end_all(victims, grace_s=0.0, kill_after_s=3.0)
    containers = container.sweep(workspace, alive - named, job)
    left = {proc.pid for proc in victims()}
    return {
        "stopped": sorted(named),
        "killed": [dict(seen[pid], signal=name) for pid, name in sorted(sent.items()) if pid not in left],
        "containers": containers,
        "left": [seen[pid] for pid in sorted(left)],
    }


def stop_job(folder: str, by: str) -> None:
    """Ask a living runner to end its job, and wait for it as long as it may take."""
    spec = load(os.path.join(folder, "job.json"))
    if not spec:
        return
    ask_to_stop(folder, "reaped", by)
    until = time.monotonic() + spec["kill_after_s"] + 3.0
    while locked(folder) and time.monotonic() < until:
        time.sleep(0.02)
