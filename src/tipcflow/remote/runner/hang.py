"""Detects a command without progress or remaining time; its evidence is collected before it is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from .files import Json, load
from .processes import Proc
from .programs import unmarked_environment
from .progress import Progress
from .ranks import holders, rank_of_log
from .workers import Workers

POLL_S = 1.0
COLLECT_S = 30.0  # time limit for the process that collects evidence
LATE_S = 10.0  # the same, for a command that reaches its deadline
WORD = "peers.json"  # that report, in the job's folder: {"active": whether a peer makes progress}


class Hang:
    """Detects whether the current command hangs.

    Attributes:
        message: why it counts as hung, '' if it does not.
        number: number of the job's last hang or silence, from 1 on; 0 before the first one.
        unsure: the node is silent, but its ranks have never counted iterations: many suites print on one rank
            only. Whether the command hangs depends on its peers, which a controller queries.
    """

    def __init__(self, folder: str, spec: Json, workers: Workers, progress: Progress) -> None:
        self.folder, self.spec, self.workers, self.progress = folder, spec, workers, progress
        self.message, self.since, self.polled_at, self.late = "", 0.0, 0.0, 0.0
        self.unsure, self.number = False, 0
        self.collector: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Reset for another command."""
        self.close()
        self.message, self.unsure = "", False

    def notice(self) -> bool:
        """Check for a hang; return True once, when it starts."""
        now = time.monotonic()
        # Scanning all processes is expensive, and a finished rank stays silent while other ranks continue.
        if self.message or self.late or now - self.polled_at < POLL_S:
            return False
        # Servers and launcher are silent while the trainers of other nodes are running.
        if self.workers.servers.trained(self.workers.ends):
            return False
        self.polled_at = now
        names = self.progress.silent()
        if not names:
            return False
        procs = self.workers.find()
        if len(names) < len(self.progress.logs):
            names = [name for name in names if self.held(procs, name)]
        if not names:
            return False
        self.unsure = bool(self.spec.get("peers")) and not self.progress.counts()
        if self.unsure:
            self.forget_word()
        self.message, self.since = self.words(names, procs), time.monotonic()
        self.number += 1
        return True

    def forget_word(self) -> None:
        """Remove the report about an earlier silence."""
        try:
            os.unlink(os.path.join(self.folder, WORD))
        except OSError:
            pass

    def is_settled(self) -> bool:
        """Return whether it is known that the command hangs, although this node cannot detect it alone.

        A peer with progress ends the suspicion. Without a controller's report nothing is known: the deadline, or
        the lease if no controller is left, ends the command.
        """
        if not self.unsure:
            return True
        word = load(os.path.join(self.folder, WORD))
        active = word.get("active") if isinstance(word, dict) else None
        if active:
            self.progress.clear()
            self.begin()
        elif active is not None:
            self.unsure, self.since = False, time.monotonic()
            self.collect("hang", self.message)
        return False

    def held(self, procs: list[Proc], name: str) -> bool:
        """Return whether a process may still write to that log: a finished rank is silent, too."""
        who = holders(procs, self.progress.logs[name].key)
        return who is None or bool(who)

    def words(self, names: list[str], procs: list[Proc]) -> str:
        """Return one line: the log, its rank, since when it is silent, after which iteration, and the state of
        the other logs."""
        log = self.progress.logs[names[0]]
        rank = rank_of_log(procs, log.path)
        text = f"no progress: nothing new in {names[0]}" + (f" (rank {rank})" if rank else "")
        text += f" for {log.idle_s:.0f} s"
        text += "" if log.iteration is None else f", after iteration {log.iteration}"
        silent = len(names) - 1
        # Logs that became silent a moment later count as silent, too.
        others = sum(one.idle_s < self.progress.limit_s / 2 for one in self.progress.logs.values())
        if silent:
            text += f"; {silent} other log{'s are' if silent > 1 else ' is'} silent, too"
        return text + (f"; {others} other{'s are' if others > 1 else ' is'} active" if others else "")

    def seen(self, message: str) -> bool:
        """At the deadline: return whether the evidence is complete, or its collection took too long.

        Args:
            message: why the command has to end.
        """
        if not self.late:
            self.late = time.monotonic()
            if not self.message:  # otherwise its evidence exists or is being collected
                self.collect("deadline", message)
        busy = self.collector is not None and self.collector.pid not in self.workers.statuses
        if busy and time.monotonic() - self.late < LATE_S:
            return False
        self.close()
        return True

    def collect(self, why: str, message: str) -> None:
        """Start the collection of evidence in a separate process, whose errors do not affect the job."""
        this = [sys.executable, "-I", "-S", "-X", "utf8", os.path.abspath(sys.argv[0])]
        try:
            self.collector = subprocess.Popen(
                [*this, "evidence", self.folder, f"--{why}", message], env=unmarked_environment(),
                start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        except OSError:
            return  # out of processes or memory: the hang is ended without evidence
        self.workers.helpers.add(self.collector.pid)

    def over(self) -> bool:
        """Return whether the command hangs and its evidence is complete or exceeded its time limit."""
        if not self.message or not self.is_settled():
            return False
        passed = time.monotonic() - self.since
        if self.collector and self.collector.pid not in self.workers.statuses:
            if passed < COLLECT_S:
                return False
            self.close()
        return passed >= float(self.spec.get("hang_wait_s") or 0)

    def close(self) -> None:
        """End the collector if it is still running."""
        if self.collector and self.collector.pid not in self.workers.statuses:
            try:
                os.killpg(self.collector.pid, signal.SIGKILL)
            except OSError:
                pass
        self.collector = None
