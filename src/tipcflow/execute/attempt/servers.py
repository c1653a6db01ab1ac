"""The end of a training with parameter servers: these are ended when the trainers of all nodes have succeeded."""

import time
from collections.abc import Sequence

from tipcflow.domain import InfraError
from tipcflow.execute.job.member import Member

# Interval of queries whether the trainers of the other nodes have succeeded.
EVERY_S = 2.0


class ServerEnds:
    """Ends the parameter servers of an attempt. Several processes may do so; the requests may be repeated."""

    def __init__(self) -> None:
        self._at = 0.0

    def act(self, members: Sequence[Member], own: Sequence[Member]) -> None:
        """Request the end of the servers once no trainer needs them.

        Args:
            own: members that this process watches; the others are queried.
        """
        waiting = [member for member in own if member.trained and not member.done]
        if not waiting or time.monotonic() < self._at + EVERY_S:
            return
        self._at = time.monotonic()
        for member in members:
            if member not in own and not member.done and not member.trained:
                member.poll(patient=True)
        if all(member.trained or (member.record is not None and member.record.ok) for member in members):
            for member in waiting:
                try:
                    member.session.finish(member.spec)
                except InfraError:
                    continue  # repeated; if the node stays away, it is lost
