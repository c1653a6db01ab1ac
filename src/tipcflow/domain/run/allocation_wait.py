"""The record of a run that waits for an allocation by Slurm."""

from typing import ClassVar

from tipcflow.domain.base import Frozen
from tipcflow.domain.masking import Masked
from tipcflow.domain.run_documents import Fields


class SlurmPlace(Frozen):
    """The place of a run's job in Slurm's queue.

    Attributes:
        job: ID of the job.
        partition: that of the cluster file; '' for Slurm's default.
        position: from 1; 0 if it is unknown.
        pending: number of pending jobs of the partition.
        reason: why Slurm does not start the job, such as `Resources`; '' if it is unknown.
        starts: expected start, seconds since the epoch; None if Slurm has not computed one.
    """

    job: str
    partition: str = ""
    position: int = 0
    pending: int = 0
    reason: Masked = ""
    starts: float | None = None


class AllocationWaitDocument(Fields):
    """The run waits for an allocation of nodes by Slurm. It is removed when the run has its nodes.

    Attributes:
        since: start of the wait, seconds since the epoch by the database's clock.
        until: deadline of the wait. A later record is that of a controller that died.
        place: last known place in the queue; None before it is known.
    """

    NAME: ClassVar[str] = "allocation_wait"
    since: float
    until: float
    place: SlurmPlace | None = None
