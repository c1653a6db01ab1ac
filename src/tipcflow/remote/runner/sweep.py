"""Who of ours is on this node, and ending those whose job is over."""

from __future__ import annotations

import glob
import os
import time

from .files import Json, describe, job_folder, load, locked, save
from .processes import Proc, end_all, marked

LIVING = ("staging", "staged", "running")


def is_runner(proc: Proc) -> bool:
    """Whether it is a runner's daemon: it alone carries this mark."""
    return proc.var("TIPCFLOW_RUNNER") == "1"


def survey(workspace: str) -> Json:
    """Every process that carries this workspace's mark, and every job folder with its state."""
    processes = []
    for proc in marked({"TIPCFLOW_WORKSPACE": workspace})():
        try:
            with open(f"/proc/{proc.pid}/cmdline", "rb") as handle:
                command = handle.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()[:200]
        except OSError:
            continue
        job = proc.var("TIPCFLOW_JOB")
        processes.append({
            "pid": proc.pid, "ppid": proc.ppid, "job": job, "node": proc.var("TIPCFLOW_NODE"),
            "runner": is_runner(proc), "cmdline": command, "rss": proc.rss,
        })  # fmt: skip
    jobs = []
    for path in sorted(glob.glob(os.path.join(glob.escape(workspace), "jobs", "*", "*", "*", "job.json"))):
        spec, told = load(path), describe(os.path.dirname(path))
        if spec:
            job = f"{spec['run']}/{spec['step']}/{spec['attempt']}"
            jobs.append({"job": job, "folder": os.path.dirname(path), "state": told["state"], "pid": told["pid"]})
    return {"processes": processes, "jobs": jobs}


def reap(workspace: str, job: str, living: bool) -> Json:
    """End the processes of jobs that are over; living jobs only when `job` names one, or all with `living`."""
    before = survey(workspace)
    alive = {item["job"] for item in before["jobs"] if item["state"] in LIVING}
    alive |= {item["job"] for item in before["processes"] if item["runner"]}
    named = alive if living else alive & {job}
    for name in named:
        stop_job(job_folder(workspace, name))
    spared = alive - named

    def victims() -> list[Proc]:
        found = marked({"TIPCFLOW_WORKSPACE": workspace})()
        return [
            proc
            for proc in found
            if proc.var("TIPCFLOW_JOB") not in spared and (not job or proc.var("TIPCFLOW_JOB") == job)
        ]

    sent = end_all(victims, grace_s=0.0, kill_after_s=3.0)
    left = {proc.pid for proc in victims()}
    known = {item["pid"]: item for item in before["processes"]}
    return {
        "stopped": sorted(named),
        "killed": [
            dict(known.get(pid, {"pid": pid}), signal=name) for pid, name in sent.items() if pid not in left
        ],
        "left": [known.get(pid, {"pid": pid}) for pid in sorted(left)],
    }


def stop_job(folder: str) -> None:
    """Ask a living runner to end its job, and wait for it as long as it may take."""
    spec = load(os.path.join(folder, "job.json"))
    if not spec:
        return
    save(os.path.join(folder, "stop"), "reaped")
    until = time.monotonic() + spec["kill_after_s"] + 3.0
    while locked(folder) and time.monotonic() < until:
        time.sleep(0.02)
