"""Has a run left the level of its predecessors? What the gate says when it has seen the runs before."""

from collections.abc import Sequence
from dataclasses import dataclass

from tipcflow.check.detect import Alert, Gate
from tipcflow.config.policy import DetectRule


@dataclass(frozen=True)
class Level:
    """What the gate says of the last run.

    Attributes:
        alert: the change that this run raises; None when it raises none.
        asked: whether the gate asked for a confirm run, to tell a change from an odd run.
    """

    alert: Alert | None
    asked: bool


def level_of(
    value: float, past: Sequence[float], rule: DetectRule, *, higher_is_better: bool, confirm: float | None
) -> Level:
    """Judge the last run of a history, after the runs before it went through the same gate.

    Args:
        past: medians of accepted runs, oldest first; finite.
        confirm: what the confirm run of this run measured; None when there is none.
    """
    gate = Gate(higher_is_better, rule)
    for index, one in enumerate(past):
        gate.judge(index, one, lambda: None)
    before = gate.asked
    alert = gate.judge(len(past), value, lambda: confirm)
    return Level(alert, gate.asked > before)
