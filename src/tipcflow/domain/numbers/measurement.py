"""One number that a run produced, with everything that tells it from every other number."""

from enum import StrEnum

from tipcflow.domain.base import Frozen


class Phase(StrEnum):
    """What was going on when the number was taken."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"
    RESOURCE = "resource"


class Measurement(Frozen):
    """(run, step, leg, attempt, node, rank, metric, phase, ordinal) -> value in unit.

    No part of the key is ever missing: `leg` is '' outside inference, `rank` is -1 where there is none.
    `ordinal` counts the samples within the rest of the key from 0; `epoch` and `iteration` are what the log
    printed (-1 when it printed none). nan and inf are values.

    `stands_for` is how many samples the value stands for: 1 for a raw one, more where the raw samples of a series
    were rolled up, of which this is the median.
    """

    run: str
    step: str
    leg: str = ""
    attempt: int = 1
    node: str
    rank: int = -1
    metric: str
    phase: Phase
    ordinal: int = 0
    value: float
    unit: str = ""
    epoch: int = -1
    iteration: int = -1
    source: str = ""
    offset: int = -1
    stands_for: int = 1
