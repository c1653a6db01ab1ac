"""Records how the training processes of a job ended, because their parent, a launcher, reports at most one of
them."""

from __future__ import annotations

import os
import time

from .files import Json
from .processes import Proc
from .ranks import rank_of


class RankEnds:
    """The first process of each rank, and how it ended.

    An ended process keeps its status in /proc until its parent has waited for it; launchers check about once
    a second.
    """

    def __init__(self) -> None:
        self.alive: dict[int, int] = {}  # pid -> rank
        self.ended: list[Json] = []

    def learn(self, procs: list[Proc]) -> None:
        """Record the ranks of the job's living processes; the children of a rank belong to it."""
        ranks = {proc.pid: rank_of(proc) for proc in procs}
        told = {end["rank"] for end in self.ended} | set(self.alive.values())
        for proc in procs:
            rank = ranks[proc.pid]
            if rank.isdigit() and not ranks.get(proc.ppid) and int(rank) not in told:
                self.alive[proc.pid] = int(rank)

    def look(self) -> None:
        """Record the processes that have ended since."""
        for pid, rank in list(self.alive.items()):
            status = _status(pid)
            if status is None:
                continue
            del self.alive[pid]
            end: Json = {"rank": rank, "at": time.time()}
            if status >= 0 and os.WIFSIGNALED(status):
                end["signal"] = os.WTERMSIG(status)
            elif status >= 0:
                end["exit_code"] = os.WEXITSTATUS(status)
            self.ended.append(end)


def _status(pid: int) -> int | None:
    """Return the wait status of an ended process, -1 if it is no longer available; None while it runs."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as handle:
            stat = handle.read()
    except OSError:
        return -1
    field = stat[stat.rindex(b")") + 2 :].split()
    return int(field[49]) if field[0] in (b"Z", b"X") else None
