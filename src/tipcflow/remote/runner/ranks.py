"""Rank of a process, the processes that write to a log, and how the ranks and parameter servers of a job ended.

Their parent, a launcher, reports at most one of their ends. A parameter server does not end with its trainers, and
the launcher waits for it. The controller knows the trainers of all nodes: it requests the end of the servers when
all of them have succeeded.
"""

from __future__ import annotations

import os
import time

from .files import Json, save
from .processes import Proc

FINISH = "finish"  # that request, in the job's folder
# A launcher ends the whole command within this time after a process failed: how a trainer ended may be unknown,
# because the launcher had waited for it before the runner could inspect it.
FAILED_S = 10.0


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


class Servers:
    """The parameter servers of the current command.

    Attributes:
        ended: servers that ended before the runner ended them, in the form of the exit record's `servers`.
        finished: number of servers to end because no trainer needs them; 0 until then.
    """

    def __init__(self, folder: str, spec: Json) -> None:
        self.path, self.trainers = os.path.join(folder, FINISH), int(spec.get("trainers") or 0)
        self.alone = not spec.get("peers")
        self.forget()

    def forget(self) -> None:
        """Reset for another command."""
        self.alive: dict[int, int] = {}  # pid -> rank
        self.ended: list[Json] = []
        self.finished = 0

    def learn(self, procs: list[Proc]) -> None:
        """Record the servers among the job's living processes; the children of a server belong to it."""
        roles = {proc.pid: proc.var("TRAINING_ROLE") for proc in procs} if self.trainers else {}
        known = {end["rank"] for end in self.ended} | set(self.alive.values())
        for proc in procs if self.trainers else []:
            if roles[proc.pid] == "PSERVER" and roles.get(proc.ppid) != "PSERVER":
                rank = server_rank(proc)
                if rank not in known:
                    self.alive[proc.pid] = rank

    def poll(self) -> None:
        """Record the servers that have ended since."""
        for pid, rank in list(self.alive.items()):
            status = status_of(pid)
            if status is not None:
                del self.alive[pid]
                self.ended.append(end_of(rank, status))

    def trained(self, ends: RankEnds) -> bool:
        """Return whether all trainers of this node have succeeded."""
        if not self.trainers or len(ends.ended) < self.trainers:
            return False
        if any(end.get("exit_code") or end.get("signal") for end in ends.ended):
            return False
        unknown = [end["at"] for end in ends.ended if "exit_code" not in end]
        return not unknown or time.time() - max(unknown) > FAILED_S

    def over(self, ends: RankEnds) -> bool:
        """Return whether the runner has to end the servers: no trainer needs them, and they are still running."""
        self.poll()
        if self.alive and self.trained(ends) and (self.alone or os.path.exists(self.path)):
            self.finished = len(self.alive)
        return bool(self.finished)

    def message(self) -> str:
        """Return what the runner did, for the exit record."""
        count = self.finished
        return f"{count} parameter server{'s' if count > 1 else ''} ended after all trainers had succeeded"


def server_rank(proc: Proc) -> int:
    """Return the rank of a server among those of all nodes; -1 if unknown."""
    place = f"{proc.var('POD_IP')}:{proc.var('PADDLE_PORT')}"
    places = proc.var("PADDLE_PSERVERS_IP_PORT_LIST").split(",")
    return places.index(place) if place in places else -1


def request_end(folder: str) -> None:
    """Request the end of the servers from the runner."""
    save(os.path.join(folder, FINISH), "")
