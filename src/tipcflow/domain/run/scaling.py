"""The result of a scaling chain: one run per topology."""

from typing import ClassVar

from tipcflow.domain.base import Record
from tipcflow.domain.run_documents import Fields
from tipcflow.domain.status import Status


class ScaledTopology(Record):
    """One topology of a scaling chain.

    Attributes:
        run: its run, '' if none started.
        status: of the run, or `not_run`.
        reason: why it has no speed.
    """

    topology: str
    batch_size_per_device: int = 0
    run: str = ""
    status: Status = Status.NOT_RUN
    reason: str = ""


class ScalingDocument(Fields):
    """A scaling chain, stored with its last run.

    Attributes:
        rule, skip, take: how a speed is computed, see `tipcflow scaling`.
        topologies: all of them, in the order of their runs.
    """

    NAME: ClassVar[str] = "scaling"
    precision: str
    repeats: int
    rule: str
    skip: int
    take: int
    topologies: tuple[ScaledTopology, ...]
