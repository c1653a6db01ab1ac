"""Parameter servers of a command: how they ended, and when no trainer of the gang needs them any more.

A server does not end with its trainers, and the launcher waits for it. The controller knows the trainers of all
nodes: it requests the end of the servers when all of them have succeeded.
"""

from __future__ import annotations

import os
import time

from .files import Json, save
from .processes import Proc
from .ranks import RankEnds, end_of, status_of

FINISH = "finish"  # that request, in the job's folder
# A launcher ends the whole command within this time after a process failed: how a trainer ended may be unknown,
# because the launcher had waited for it before the runner could inspect it.
FAILED_S = 10.0


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
