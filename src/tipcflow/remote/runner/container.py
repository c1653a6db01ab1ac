"""Removal of the container of a job's commands, whose processes do not descend from the runner."""

from __future__ import annotations

import os
import time

from .files import Json, job_id, load
from .programs import find_program, run_program

LIMIT_S = 20.0  # time limit for the engine's response
MARK = "container"  # the file in a job folder that marks a possible container
ENGINE_VARIABLES = ("DOCKER_", "CONTAINER_")  # variables that an engine reads
MISSING_MESSAGES = ("no such container", "no container with", "not found in database")


def remove(spec: Json) -> str:
    """Remove a job's container with all its processes; return why it may still exist, otherwise ''.

    Args:
        spec: the job's, or only its `container` and `container_engine`.
    """
    engine, env = spec.get("container_engine") or "docker", spec.get("env") or {}
    program = engine if "/" in engine else find_program(engine, *env.get("PATH", "").split(":"))
    if not program:
        return f"{engine} is not on this node"
    own = {name: value for name, value in env.items() if name == "PATH" or name.startswith(ENGINE_VARIABLES)}
    until = time.monotonic() + LIMIT_S
    while True:
        code, text = run_program([program, "rm", "-f", spec["container"]], max(1.0, until - time.monotonic()), own)
        if code == 0 or any(words in text.lower() for words in MISSING_MESSAGES):
            return ""
        if "in progress" not in text or time.monotonic() > until:  # docker's own --rm was faster
            return (text.strip().splitlines() or [f"{engine} rm ended with {code}"])[-1]
        time.sleep(0.2)


def unmark(path: str) -> None:
    """Delete the mark of a removed container; the runner and a sweep may both do so."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def sweep(workspace: str, alive: set[str], job: str) -> list[Json]:
    """Remove the containers of ended jobs; return the results.

    Args:
        alive: running jobs.
        job: '' for all.
    """
    found = []
    import glob

    for path in sorted(glob.glob(os.path.join(glob.escape(workspace), "jobs", "*", "*", "*", MARK))):
        spec = load(os.path.join(os.path.dirname(path), "job.json"))
        if not spec or not spec.get("container") or job_id(spec) in alive or job not in ("", job_id(spec)):
            continue
        trouble = remove(spec)
        if not trouble:
            unmark(path)
        report = {"job": job_id(spec), "container": spec["container"], "removed": not trouble, "message": trouble}
        found.append(report)
    return found
