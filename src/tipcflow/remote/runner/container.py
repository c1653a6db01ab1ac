"""The container of a job's commands: removed with them, although its processes have other parents."""

from __future__ import annotations

import glob
import os
import re
import time

from .files import Json, job_id, load
from .said import said, tool

LIMIT_S = 20.0  # for the engine's answer
MARK = "container"  # the file in a job folder that says that there may be one
GONE = re.compile(r"no such container|no container with|not found in database", re.I)


def remove(spec: Json) -> str:
    """Remove a job's container with all its processes; return why it may still exist, else ''.

    Args:
        spec: the job's, or its `container` and `container_engine` alone.
    """
    engine, env = spec.get("container_engine") or "docker", spec.get("env") or {}
    program = engine if "/" in engine else tool(engine, *env.get("PATH", "").split(":"))
    if not program:
        return f"{engine} is not on this node"
    own = {name: value for name, value in env.items() if re.match(r"(DOCKER|CONTAINER)_|PATH$", name)}
    until = time.monotonic() + LIMIT_S
    while True:
        code, text = said([program, "rm", "-f", spec["container"]], max(1.0, until - time.monotonic()), own)
        if code == 0 or GONE.search(text):
            return ""
        if "in progress" not in text or time.monotonic() > until:  # docker's own --rm was quicker
            return (text.strip().splitlines() or [f"{engine} rm ended with {code}"])[-1]
        time.sleep(0.2)


def unmark(path: str) -> None:
    """Remove the mark of a removed container; the runner and a sweep may both do so."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def sweep(workspace: str, alive: set[str], job: str) -> list[Json]:
    """Remove the containers of jobs that have ended; return the results.

    Args:
        alive: running jobs.
        job: '' for all.
    """
    found = []
    for path in sorted(glob.glob(os.path.join(glob.escape(workspace), "jobs", "*", "*", "*", MARK))):
        spec = load(os.path.join(os.path.dirname(path), "job.json"))
        if not spec or not spec.get("container") or job_id(spec) in alive or job not in ("", job_id(spec)):
            continue
        trouble = remove(spec)
        if not trouble:
            unmark(path)
        told = {"job": job_id(spec), "container": spec["container"], "removed": not trouble, "message": trouble}
        found.append(told)
    return found
