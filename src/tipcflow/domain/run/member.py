"""The state of one node's part of an attempt."""

from tipcflow.domain.base import Record
from tipcflow.domain.masking import Masked
from tipcflow.domain.run.exit_record import ExitRecord
from tipcflow.domain.run.failure import FailureClass


class MemberState(Record):
    """One node's part of one attempt of a step.

    Attributes:
        released: whether its job was released, or needs no release.
        record: exit record of the job; None while it is running or if it was lost.
        legs: leg id -> exit record of the leg.
        artefacts: path relative to the suite's root -> size in bytes, of the files that the job wrote.
        log_bytes: leg ('' for a step's only command) -> read bytes of its log.
        lost: why its state is unknown, '' while it is observable.
        lost_class: class of the failure because of which it could not start; None if it started or is unknown.
        lost_by: the other node whose failure ended the allocation of both; '' if none is known.
        damaged: whether it is lost because its record is not its runner's.
        generation: how often this node's own task had been cleared when it took part (a number that only grows);
            0 while only other nodes' tasks have written of this part.
        cleared: how often the DAG run had been cleared when the task that wrote this began: all tasks of a run
            share that number. -1 if unknown.
        down_since, known_at: time of the link's failure (0 while connected) and of the record's arrival, seconds
            since the epoch by the controller's clock.
    """

    schema_version: int = 1
    node: str
    released: bool = False
    generation: int = 0
    cleared: int = -1
    record: ExitRecord | None = None
    legs: dict[str, ExitRecord] = {}
    artefacts: dict[str, int] = {}
    log_bytes: dict[str, int] = {}
    lost: Masked = ""
    lost_class: FailureClass | None = None
    lost_by: str = ""
    damaged: bool = False
    down_since: float = 0.0
    known_at: float = 0.0

    def of_round(self, generation: int, cleared: int) -> bool:
        """Whether a task of this node is of the round of tasks that ran the attempt: then it takes its result.

        A mapped task that took part has its own number. It may differ from its peers' (one may have been
        retried before), so a task that did not take part uses the DAG run's number.
        """
        if self.generation:
            return self.generation == generation
        return self.cleared >= 0 and self.cleared == cleared

    @property
    def ended(self) -> bool:
        """Whether its state is final."""
        return self.record is not None or bool(self.lost)
