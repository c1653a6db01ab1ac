"""Rank of a process, the processes that write to a log, and how the ranks of a job ended.

Their parent, a launcher, reports at most one of their ends.
"""

from __future__ import annotations

import os
import time

from .files import Json
from .processes import Proc


def rank_of(proc: Proc) -> str:
    """Return the rank that Paddle's or PyTorch's launcher has set for the process; '' for none."""
    return proc.var("PADDLE_TRAINER_ID") or proc.var("RANK")


def world_of(proc: Proc) -> int:
    """Return the number of ranks that the launcher has set; 0 for a process without a rank."""
    world = proc.var("PADDLE_TRAINERS_NUM") or proc.var("WORLD_SIZE")
    return int(world) if rank_of(proc) and world.isdigit() and len(world) < 10 else 0


def holders(procs: list[Proc], key: tuple[int, int]) -> list[Proc] | None:
    """Return processes that have this file (device, inode) open; None if one of them may not be inspected."""
    found = []
    for proc in procs:
        try:
            fds = os.listdir(f"/proc/{proc.pid}/fd")
        except PermissionError:
            return None
        except OSError:
            continue
        for fd in fds:
            try:
                stat = os.stat(f"/proc/{proc.pid}/fd/{fd}")
            except OSError:
                continue
            if (stat.st_dev, stat.st_ino) == key:
                found.append(proc)
                break
    return found


def rank_of_log(procs: list[Proc], path: str) -> str:
    """Return the rank that writes to a log, '' if there is none or there are several."""
    try:
        stat = os.stat(path)
    except OSError:
        return ""
    ranks = {rank_of(proc) for proc in holders(procs, (stat.st_dev, stat.st_ino)) or []} - {""}
    return ranks.pop() if len(ranks) == 1 else ""


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
        report = {end["rank"] for end in self.ended} | set(self.alive.values())
        for proc in procs:
            rank = ranks[proc.pid]
            if rank.isdigit() and not ranks.get(proc.ppid) and int(rank) not in report:
                self.alive[proc.pid] = int(rank)

    def poll(self) -> None:
        """Record the processes that have ended since."""
        for pid, rank in list(self.alive.items()):
            status = status_of(pid)
            if status is not None:
                del self.alive[pid]
                self.ended.append(end_of(rank, status))


def end_of(rank: int, status: int) -> Json:
    """Return the end of a rank, for the exit record; `status` is that of `status_of`."""
    end: Json = {"rank": rank, "at": time.time()}
    if status >= 0 and os.WIFSIGNALED(status):
        end["signal"] = os.WTERMSIG(status)
    elif status >= 0:
        end["exit_code"] = os.WEXITSTATUS(status)
    return end


def status_of(pid: int) -> int | None:
    """Return the wait status of an ended process, -1 if it is no longer available; None while it runs."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as handle:
            stat = handle.read()
    except OSError:
        return -1
    field = stat[stat.rindex(b")") + 2 :].split()
    return int(field[49]) if field[0] in (b"Z", b"X") else None
