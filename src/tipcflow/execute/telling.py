"""Which process of a node's part of a step tells what went wrong, and whether that was its own fault."""

from collections.abc import Mapping
from dataclasses import dataclass

from tipcflow.parse import parse_launch
from tipcflow.parse.failure import Trouble, trouble_of


@dataclass(frozen=True)
class Telling:
    """What one node's logs tell of a failure.

    Attributes:
        text: the end of the log that tells most, for an excerpt.
        rank: whose log that is, over all nodes; -1 for the output of the step's command.
        trouble: what it says, None when it says nothing.
        code: how the launcher says that a worker ended, negative for a signal; 0 when it says nothing.
        silent: the worker of this node that ended without a word while the others say that a peer went away; -1
            when there is none.
    """

    text: str = ""
    rank: int = -1
    trouble: Trouble | None = None
    code: int = 0
    silent: int = -1

    @property
    def victim(self) -> bool:
        """Whether it only says that a peer went away."""
        return self.trouble is not None and self.trouble.victim and self.silent < 0


def telling(output: str, workers: Mapping[int, str], first: int = 0) -> Telling:
    """What the end of a command's output and of its workers' logs tell.

    The launcher blames the worker whose end it noticed first, which is often the peer of the one to blame: a
    worker that names a cause of its own counts more.

    Args:
        workers: rank over all nodes -> end of that worker's log.
        first: the lowest rank on this node.
    """
    launch = parse_launch(output)
    named = launch.log.rpartition("workerlog.")[2] if launch else ""
    blamed = first + int(named) if named.isdigit() else -1
    code = launch.code if launch else 0
    troubles = {rank: trouble_of(text) for rank, text in sorted(workers.items())}
    own = [rank for rank, said in troubles.items() if said is not None and not said.victim]
    if own:
        rank = blamed if blamed in own else own[0]
        return Telling(workers[rank], rank, troubles[rank], code if rank == blamed else 0)
    whole = trouble_of(output)
    if whole is not None and not whole.victim:
        return Telling(output, -1, whole, code)
    victims = [rank for rank, said in troubles.items() if said is not None]
    if victims:
        silent = next((rank for rank, said in troubles.items() if said is None), -1)
        rank = blamed if blamed in troubles else victims[0]
        if code < 0 and troubles.get(rank) is None and rank in troubles:
            return Telling(workers[rank], rank, None, code)  # a signal that the launcher saw
        return Telling(workers[victims[0]], victims[0], troubles[victims[0]], 0, silent)
    if blamed in workers:
        return Telling(workers[blamed], blamed, whole, code)
    return Telling(output, -1, whole, code)
