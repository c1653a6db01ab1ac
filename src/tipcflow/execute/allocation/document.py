"""The stored record of a run's allocation."""

from collections.abc import Sequence
from typing import ClassVar

from tipcflow.domain.run_documents import Fields


class AllocationDocument(Fields):
    """The run's allocation of nodes by Slurm, stored before it is requested.

    Attributes:
        attempt: number of the request: an allocation that has ended is followed by another one.
        name: the job's name, by which it is found and ended.
        job: its ID, '' if it is not known.
        planned: names of the nodes of the plan before the first allocation, in its order.
    """

    NAME: ClassVar[str] = "allocation"
    attempt: int = 1
    name: str
    job: str = ""
    planned: tuple[str, ...] = ()

    def node(self, name: str, nodes: Sequence[str]) -> str:
        """Return the node that a node of the first plan has become.

        Args:
            nodes: the nodes of the plan.
        """
        return nodes[self.planned.index(name)] if name in self.planned else name


class HolderDocument(Fields):
    """The `tipcflow run` that uses the run's allocation; runs of Airflow have none.

    Attributes:
        owner: `user@host pid N`.
        until: it runs until then at least, unless it was killed; seconds since the epoch.
    """

    NAME: ClassVar[str] = "holder"
    owner: str = ""
    until: float
