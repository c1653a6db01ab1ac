"""Helper processes on a node that belong to a controller instead of a job: uploads, watches, evidence, and the
guards of jobs.

They carry TIPCFLOW_HELPER (purpose) and TIPCFLOW_FOR (the workspace, or a folder in it). Each has its own
deadline; after a silent loss of its connection it may run until then. A stopped helper (SIGSTOP) does not
react to its deadline: a job's guard ends the helpers of its job, and `reap` ends all.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Iterable

from .files import Json, job_folder, locked
from .processes import HZ, MARK_GUARD, Proc, command_of, end_all, scan, user_of

SILENT_S = 30.0  # an upload without data for this long has lost its connection
GRACE_S = 3.0  # a guard exits by itself as soon as its job has no processes left


def age_s(proc: Proc) -> float:
    """Return the age of a process."""
    with open("/proc/uptime") as handle:
        return max(0.0, float(handle.read().split()[0]) - proc.start / HZ)


def silent_s(proc: Proc) -> float:
    """Return for how long a process has not written to its stdout, if that is a file; otherwise 0."""
    try:
        if not os.path.isfile(f"/proc/{proc.pid}/fd/1"):
            return 0.0
        return max(0.0, time.time() - os.stat(f"/proc/{proc.pid}/fd/1").st_mtime)
    except OSError:
        return 0.0


def place_of(proc: Proc) -> str:
    """Return the folder that a helper works for, '' if the process is not a helper."""
    return proc.var("TIPCFLOW_FOR") if proc.var("TIPCFLOW_HELPER") else ""


def ancestors(table: Iterable[Proc]) -> set[int]:
    """Return this process and its ancestors."""
    parents = {proc.pid: proc.ppid for proc in table}
    found, pid = {os.getpid()}, os.getppid()
    while pid in parents and pid not in found:
        found.add(pid)
        pid = parents[pid]
    return found


def helpers(workspace: str, table: list[Proc]) -> list[Json]:
    """Return all helpers of a workspace except this process and its ancestors; and the guards."""
    own_pids = ancestors(table)
    found = []
    for proc in table:
        guard = bool(proc.var(MARK_GUARD)) and proc.var("TIPCFLOW_WORKSPACE") == workspace
        place = proc.var("TIPCFLOW_WORKSPACE") if guard else place_of(proc)
        if proc.pid in own_pids or not (place == workspace or place.startswith(workspace + "/")):
            continue
        what = "guard" if guard else proc.var("TIPCFLOW_HELPER")
        one: Json = {
            "pid": proc.pid, "start": proc.start, "helper": what, "for": place,
            "job": proc.var("TIPCFLOW_JOB") if guard else "", "user": user_of(proc.pid),
            "cmdline": command_of(proc.pid), "age_s": round(age_s(proc), 1), "silent_s": round(silent_s(proc), 1),
            "deadline_s": float(proc.var("TIPCFLOW_DEADLINE") or 0), "stopped": proc.stopped,
        }  # fmt: skip
        found.append(dict(one, over=is_over(one, workspace)))
    return found


def is_over(one: Json, workspace: str) -> bool:
    """Return whether no process waits for the helper any more."""
    if one["helper"] == "guard":
        return not locked(job_folder(workspace, one["job"]))
    late = 0 < one["deadline_s"] < one["age_s"]
    return bool(late or one["stopped"] or (one["helper"] == "upload" and one["silent_s"] > SILENT_S))


def wake_to_end(procs: Iterable[Proc]) -> dict[int, str]:
    """Let stopped processes end: SIGTERM, then SIGCONT so that they handle it. Return pid -> the signal."""
    sent = {}
    for proc in procs:
        if proc.stopped:
            try:
                os.kill(proc.pid, signal.SIGTERM)
                os.kill(proc.pid, signal.SIGCONT)
                sent[proc.pid] = "SIGTERM"
            except OSError:
                pass  # already ended, or another user's
    return sent


def end_stopped(folder: str) -> dict[int, str]:
    """End the stopped helpers of one ended job. Return pid -> the last signal sent."""

    def find() -> list[Proc]:
        return [proc for proc in scan({os.getpid()}) if proc.stopped and place_of(proc) == folder]

    sent = wake_to_end(find())
    if sent:
        sent.update(end_all(find, grace_s=0.5, kill_after_s=0.0, give_up_s=3.0))
    return sent


def end_helpers(workspace: str, job: str) -> tuple[list[Json], list[Json]]:
    """End abandoned helpers; return those that were ended, and those that cannot be ended.

    Args:
        job: only the guard of this job is included; '' for all.
    """
    seen: dict[tuple[int, int], Json] = {}

    def find() -> list[Proc]:
        table = list(scan({os.getpid()}))
        for one in helpers(workspace, table):
            if one["over"] and (one["helper"] != "guard" or job in ("", one["job"])):
                seen.setdefault((one["pid"], one["start"]), one)
        return [proc for proc in table if (proc.pid, proc.start) in seen]

    sent = wake_to_end(find())
    sent.update(end_all(find, grace_s=GRACE_S, kill_after_s=2.0, give_up_s=3.0))
    left = {(proc.pid, proc.start) for proc in find()}
    ended = [dict(one, signal=sent[key[0]]) for key, one in seen.items() if key not in left and key[0] in sent]
    return ended, [one for key, one in seen.items() if key in left]
