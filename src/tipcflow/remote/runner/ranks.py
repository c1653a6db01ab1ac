"""Rank of a process, and the processes that write to a log."""

from __future__ import annotations

import os

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
