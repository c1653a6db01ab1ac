"""The result of a scaling chain: one run per topology."""

from typing import ClassVar

from tipcflow.domain.base import Record
from tipcflow.domain.masking import Masked
from tipcflow.domain.run_documents import Fields
from tipcflow.domain.status import Status


class ScaledTopology(Record):
    """One topology of a scaling chain.

    Attributes:
        run: its run, '' if none started.
        status: of the run, or `not_run`.
        reason: why it has no speed.
        devices: on all nodes.
        repeats: number of trainings; their speeds, samples/s of all devices, have the average, the median and the
            `spread` ((maximum - minimum) / median). None: no speed, or stored before speeds were.
        speedup: median relative to that of the smallest topology.
        efficiency: speed-up per device; 1.0 is perfect.
    """

    topology: str
    batch_size_per_device: int = 0
    run: str = ""
    status: Status = Status.NOT_RUN
    reason: Masked = ""
    devices: int = 0
    repeats: int = 0
    average_speed: float | None = None
    median_speed: float | None = None
    spread: float | None = None
    speedup: float | None = None
    efficiency: float | None = None


class ScalingDocument(Fields):
    """A scaling chain, stored with its last run.

    Attributes:
        rule, skip, take: how a speed is computed, see `tipcflow scaling`.
        topologies: all of them, in the order of their runs.
        notes: for the user, such as implausible speed-ups.
    """

    NAME: ClassVar[str] = "scaling"
    precision: str
    repeats: int
    rule: str
    skip: int
    take: int
    topologies: tuple[ScaledTopology, ...]
    notes: tuple[Masked, ...] = ()
