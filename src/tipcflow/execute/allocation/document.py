"""The stored record of a run's allocation."""

from typing import ClassVar

from tipcflow.domain.run_documents import Fields


class AllocationDocument(Fields):
    """The run's allocation of nodes by Slurm, stored before it is requested.

    Attributes:
        attempt: number of the request: an allocation that has ended is followed by another one.
        name: the job's name, by which it is found and ended.
        job: its ID, '' if it is not known.
    """

    NAME: ClassVar[str] = "allocation"
    attempt: int = 1
    name: str
    job: str = ""
