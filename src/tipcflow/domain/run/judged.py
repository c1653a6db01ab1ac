"""When a run and its steps were judged first."""

from typing import ClassVar

from tipcflow.domain.run_documents import Fields


class JudgedDocument(Fields):
    """The times of the first judgement, seconds since the epoch: a run that is judged again is judged as of then.

    Attributes:
        at: of the run.
        steps: step id without its repeat -> the same, of steps that were executed again and judged later.
    """

    NAME: ClassVar[str] = "judged"
    at: float
    steps: dict[str, float] = {}
