"""Guard of a job: the runner's parent, which outlives the runner and ends what a killed runner leaves.

The runner adopts every orphan of its job. If the runner itself gets SIGKILL, its children are reparented to
the next subreaper above it, which is the guard: also children without a mark in their environment.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from . import container
from .files import Json, job_id, load, locked
from .helpers import end_stopped
from .membership import OrphanedJob
from .processes import UNKILLABLE_S, Proc, end_all, marks

# The runner ends every job in time. The guard's own, later deadline covers a stopped runner; reading large
# outputs takes minutes.
MARGIN_S = 600.0
POLL_S = 5.0
WAKE = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def adopt_orphans() -> None:
    """Become the parent of all orphaned descendants (PR_SET_CHILD_SUBREAPER)."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError) as error:
        sys.stderr.write(f"orphans cannot be adopted: {error}\n")


def life_s(spec: Json) -> float:
    """Return the longest time that a job may take, including its cleanup."""
    waits = float(spec["barrier_s"]) + float(spec["deadline_s"]) + float(spec.get("hang_wait_s") or 0)
    return waits + float(spec["kill_after_s"]) * max(2, len(spec["commands"])) + UNKILLABLE_S + MARGIN_S


class Guard:
    """Waits for the runner's end, then ends the remaining processes of its job."""

    def __init__(self, folder: str, spec: Json, runner: int) -> None:
        self.folder, self.spec, self.runner = folder, spec, runner
        self.status: int | None = None
        self.hurry = False

    def reap(self) -> None:
        """Reap ended children, including the runner."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.status = -1 if self.status is None else self.status
                return
            if not pid:
                return
            if pid == self.runner:
                self.status = status

    def wait(self) -> None:
        """Wait for the runner's end; kill it if it is still running at the guard's own deadline."""
        until = time.monotonic() + life_s(self.spec)
        while True:
            self.reap()
            if self.status is not None:
                return
            if time.monotonic() > until:
                sys.stderr.write(f"guard: the runner (pid {self.runner}) outlived its deadline and gets SIGKILL\n")
                os.kill(self.runner, signal.SIGKILL)
                until = time.monotonic() + POLL_S
            signal.sigtimedwait(WAKE, POLL_S)

    def end(self) -> None:
        """End all remaining processes, and log it."""
        orphans = OrphanedJob(marks(self.spec), self.folder, parent=os.getpid())
        seen: dict[int, Proc] = {}

        def find() -> list[Proc]:
            """Return what still runs; end it at once if a signal of another process requests so."""
            self.reap()
            found = orphans.find()
            seen.update({proc.pid: proc for proc in found})
            report = signal.sigtimedwait(WAKE - {signal.SIGCHLD}, 0)
            self.hurry = self.hurry or bool(report)  # another process also ends this job, and waits
            if self.hurry:
                orphans.kill()
            return found

        sent = end_all(find, grace_s=0.0, kill_after_s=float(self.spec["kill_after_s"]), kill=orphans.kill)
        left = orphans.find()
        if self.status and os.WIFSIGNALED(self.status):
            sys.stderr.write(f"guard: the runner was ended by signal {os.WTERMSIG(self.status)}\n")
        for pid in sorted(sent):
            word = "cannot be ended" if pid in {proc.pid for proc in left} else f"was sent {sent[pid]}"
            sys.stderr.write(f"guard: pid {pid} {word}\n")
        if os.path.exists(os.path.join(self.folder, container.MARK)):
            container.sweep(self.spec["workspace"], set(), job_id(self.spec))
        for pid in sorted(end_stopped(self.folder)):
            sys.stderr.write(f"guard: pid {pid}, a stopped command of a controller, was ended\n")
        if not left and not locked(self.folder):
            orphans.forget()


def guard(folder: str, runner: int, ready: int) -> None:
    """Guard this runner. `ready` is closed as soon as this process adopts the runner's orphans."""
    signal.pthread_sigmask(signal.SIG_BLOCK, WAKE)
    adopt_orphans()
    os.close(ready)
    one = Guard(folder, load(os.path.join(folder, "job.json")), runner)
    one.wait()
    one.end()
