"""Which process of a node's part of a step tells what went wrong, and whether that was its own fault."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tipcflow.domain import RankEnd
from tipcflow.parse import parse_launch
from tipcflow.parse.failures.failure import Trouble, trouble_of


@dataclass(frozen=True)
class Telling:
    """What one node's logs tell of a failure.

    Attributes:
        text: the end of the log that tells most, for an excerpt.
        rank: whose log that is, over all nodes; -1 for the output of the step's command.
        trouble: what it says, None when it says nothing.
        code: how the launcher says that a worker ended, negative for a signal; 0 when it says nothing.
        silent: the worker of this node that is to blame although its log names no cause, while the others say that
            a peer is missing; -1 when there is none.
        left: how that worker ended, where it ended before any other of this node; None where it was alive.
        mute: workers of this node that say nothing while others say that a peer is missing.
        waited: whether one of the others says that it waited in vain: then nobody had died.
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
        """Whether it only says that a peer went away."""
        return self.trouble is not None and self.trouble.victim and self.silent < 0


def telling(output: str, workers: Mapping[int, str], first: int = 0, ends: Sequence[RankEnd] = ()) -> Telling:
    """What the end of a command's output and of its workers' logs tell.

    The launcher blames the worker whose end it noticed first, which is often the peer of the one to blame: a
    worker that names a cause of its own counts more.

    Args:
        workers: rank over all nodes -> end of that worker's log.
        first: the lowest rank on this node.
        ends: which workers had ended before the runner ended the rest, in that order.
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
    """Some workers say that a peer is missing: whether it is one of this node, and how that one ended.

    The kernel's word on the first end counts more than the launcher's, which names whom it noticed first.
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
        return victim  # all of them were alive when a neighbour gave up: who is missing is on another node
    suspects = [one for one in mute if one in accused] or ([] if accused else list(mute))
    return replace(victim, silent=suspects[0]) if suspects else victim
