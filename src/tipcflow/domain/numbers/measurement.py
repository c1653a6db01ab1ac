"""Measurement: one metric value of a run, with its unique key."""

from enum import StrEnum

from tipcflow.domain.base import Frozen


class Phase(StrEnum):
    """Phase of the run in which the value was measured."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"
    RESOURCE = "resource"


class Measurement(Frozen):
    """(run, step, leg, attempt, node, rank, metric, phase, ordinal) -> value in unit.

    No part of the key is missing: `leg` is '' outside inference, `rank` is -1 without a rank.
    `ordinal` counts the samples within the rest of the key from 0; `epoch` and `iteration` are those
    printed in the log (-1 if none). nan and inf are values.

    `stands_for` is the number of samples that the value represents: 1 for a raw sample, more for the median of a
    rolled-up series.
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
