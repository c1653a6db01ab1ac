"""Nodes that tipcflow or a user drained, stored with a run, and the doubtful runs on them."""

from typing import ClassVar

from tipcflow.domain.base import Record
from tipcflow.domain.run_documents import Fields, Root


class Drain(Record):
    """A node that gets no runs. The record is never removed.

    Attributes:
        at, ended_at: seconds since the epoch; `ended_at` is None while the node is drained.
        who, ended_by: `tipcflow` or a user.
        why, ended_why: one sentence.
        doubtful: the runs on the node since its slowdown, oldest first.
        notified: teams that were notified.
    """

    cluster: str
    node: str
    at: float
    who: str
    why: str
    doubtful: tuple[str, ...] = ()
    notified: tuple[str, ...] = ()
    ended_at: float | None = None
    ended_by: str = ""
    ended_why: str = ""

    @property
    def key(self) -> str:
        """Cluster and node."""
        return f"{self.cluster}/{self.node}"


class DrainsDocument(Root[dict[str, Drain]]):
    """`<cluster>/<node>`, repeated drains with `@<at>` -> a drain of a slowdown since this run, or a user's."""

    NAME: ClassVar[str] = "drains"
    root: dict[str, Drain] = {}


class DoubtfulDocument(Fields):
    """Why the numbers of this run are doubtful."""

    NAME: ClassVar[str] = "doubtful"
    why: str
