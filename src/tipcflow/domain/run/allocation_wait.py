"""The record of a run that waits for an allocation by Slurm."""

from typing import ClassVar

from tipcflow.domain.run_documents import Fields


class AllocationWaitDocument(Fields):
    """The run waits for an allocation of nodes by Slurm. It is removed when the run has its nodes.

    Attributes:
        since: start of the wait, seconds since the epoch by the database's clock.
        until: deadline of the wait. A later record is that of a controller that died.
    """

    NAME: ClassVar[str] = "allocation_wait"
    since: float
    until: float
