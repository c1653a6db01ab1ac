"""Diagnose a node's part of a step from its logs: the failing process, and whether it caused the failure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tipcflow.domain import RankEnd
from tipcflow.parse import parse_launch
from tipcflow.parse.failures.failure import Trouble, trouble_of


@dataclass(frozen=True)
class Telling:
    """The diagnosis of one node's logs.

    Attributes:
        text: the end of the most informative log, for an excerpt.
        rank: global rank of that log; -1 for the output of the step's command.
        trouble: the recognised failure; None if there is none.
        code: how a worker ended according to the launcher, negative for a signal; 0 if not reported.
        silent: failing worker of this node whose log names no cause, while the others report a missing peer; -1 if
            there is none.
        left: how that worker ended if it was the first to end on this node; None if it was running.
        mute: workers of this node without a message while others report a missing peer.
        waited: whether another worker reports a timeout while waiting: in that case no process had died.
    """

    text: str = ""
    rank: int = -1
    trouble: Trouble | None = None
    code: int = 0
    silent: int = -1
    left: RankEnd | None = None
    mute: tuple[int, ...] = ()
    waited: bool = False

    @property
    def victim(self) -> bool:
        """Whether the log only reports the loss of a peer."""
        return self.trouble is not None and self.trouble.victim and self.silent < 0


def telling(output: str, workers: Mapping[int, str], first: int = 0, ends: Sequence[RankEnd] = ()) -> Telling:
    """Diagnose the end of a command's output and of its workers' logs.

    The launcher reports the worker whose end it noticed first, which is often a peer of the failing one: a worker
        that names a cause of its own takes precedence.

    Args:
        workers: global rank -> end of that worker's log.
        first: the lowest rank on this node.
        ends: workers that ended before the runner ended the rest, in order.
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
    if any(troubles.values()):
        return _among_victims(workers, troubles, blamed, code, ends)
    if blamed in workers:
        return Telling(workers[blamed], blamed, whole, code)
    return Telling(output, -1, whole, code)


def _among_victims(
    workers: Mapping[int, str],
    troubles: Mapping[int, Trouble | None],
    blamed: int,
    code: int,
    ends: Sequence[RankEnd],
) -> Telling:
    """Find out whether the peer that some workers miss is on this node, and how it ended.

    The kernel's record of the first end precedes the launcher's, which reports the end it noticed first.
    """
    spoken = {rank: said for rank, said in troubles.items() if said is not None}
    accused = {said.peer for said in spoken.values()} - {-1}
    waited = any(said.waited for said in spoken.values())
    rank = next((rank for rank, said in spoken.items() if said.waited), next(iter(spoken)))
    mute = tuple(rank for rank, said in troubles.items() if said is None)
    victim = Telling(workers[rank], rank, spoken[rank], mute=mute, waited=waited)
    if not mute:
        return victim
    if ends and ends[0].rank in mute:
        first = ends[0]
        unknown = first.exit_code is None and first.signal is None
        return replace(victim, silent=first.rank, left=first, code=code if unknown and first.rank == blamed else 0)
    if not ends and blamed in mute:
        return replace(victim, silent=blamed, code=code)
    if ends and not waited:
        return victim  # all were running when a neighbour timed out: the missing rank is on another node
    suspects = [one for one in mute if one in accused] or ([] if accused else list(mute))
    return replace(victim, silent=suspects[0]) if suspects else victim
