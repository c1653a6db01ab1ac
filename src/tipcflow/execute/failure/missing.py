"""Several nodes' logs -> the rank that the others waited for in vain."""

from collections.abc import Mapping
from dataclasses import replace

from tipcflow.execute.failure.diagnosis import Telling


def who_was_missing(told: Mapping[str, Telling]) -> dict[str, Telling]:
    """What each node's logs tell, with the one rank to blame that hangs, where all nodes' logs together show it.

    Where ranks waited in vain nobody had died. The first that gives up ends its connections: others then say that
    it went away, and only the rank that says nothing at all is left to blame.

    Args:
        told: node -> what its logs tell.
    """
    found = dict(told)
    own = any(one.trouble is not None and not one.trouble.victim for one in told.values())
    if own or any(one.left is not None for one in told.values()) or not any(one.waited for one in told.values()):
        return found
    mute = [(node, rank) for node, one in told.items() for rank in one.mute]
    if len(mute) != 1:
        return found
    node, rank = mute[0]
    found = {name: replace(one, silent=-1, code=0) for name, one in told.items()}
    found[node] = replace(found[node], silent=rank, waited=True)
    return found
