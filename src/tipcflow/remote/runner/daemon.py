"""Daemon of a job: runs it, adopts its orphans, and always writes an exit record."""

from __future__ import annotations

import json
import os
import select
import signal

from .files import load
from .guard import adopt_orphans
from .job import Job
from .slots import Refused
from .start import FOREIGN, code_of

GUARD_S = 5.0  # time limit for the guard's start


def daemon(folder: str, lock: int, writer: int, guard: int) -> None:
    """Run the job of this folder.

    Args:
        lock: of the folder, held.
        writer: pipe for the reason if the job is refused: `message` and `errno` as JSON.
        guard: closed as soon as the guard is ready or has failed.
    """
    for file in (lock, writer, guard):
        os.set_inheritable(file, False)
    adopt_orphans()
    reader, wake = os.pipe()
    os.set_blocking(wake, False)
    job = Job(folder, load(os.path.join(folder, "job.json")), lock, reader)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: setattr(job, "signal", number))
    reason = message = code = ""
    try:
        job.prepare()
        job.set_state("staged" if job.spec["barrier"] else "running")
        job.workers.gpu.start({name: value for name, value in os.environ.items() if not FOREIGN.fullmatch(name)})
        os.close(writer)
        writer = -1
        select.select([guard], [], [], GUARD_S)  # no process of the job may start before the guard is ready
        os.close(guard)
        reason = (job.barrier() if job.spec["barrier"] else "") or job.commands()
        message = job.why if reason else ""
    except (Refused, OSError) as error:
        reason = "lost" if job.begin else "refused"
        message, code = str(error), code_of(error)
        job.disk_full |= code in ("ENOSPC", "EDQUOT")
    except BaseException:
        import traceback

        traceback.print_exc()
        reason = "lost" if job.begin else "refused"
        message = "the runner failed: " + traceback.format_exc().strip().splitlines()[-1]
    try:
        job.finish(reason, message, code)
    finally:
        if writer >= 0:
            os.write(writer, json.dumps({"message": message, "errno": code}).encode())
