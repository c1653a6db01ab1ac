"""Logs of several nodes -> the rank that the others waited for."""

from collections.abc import Mapping
from dataclasses import replace

from tipcflow.execute.failure.diagnosis import Telling


def who_was_missing(told: Mapping[str, Telling]) -> dict[str, Telling]:
    """Return the diagnoses with the one rank that hangs marked, if the logs of all nodes together identify it.

    If ranks timed out while waiting, no process had died. The first rank that times out closes its connections,
    others then report its loss, and only the rank without any message remains as the cause.

    Args:
        told: node -> diagnosis of its logs.
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
