"""Has a run left the level of its predecessors? What the gate says when it has seen the runs before."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tipcflow.check.detect import Alert, Gate
from tipcflow.config.policy import DetectRule


@dataclass(frozen=True)
class Level:
    """What the gate says of the last run, and which runs before it are its level.

    A change for the better starts a new level. One for the worse does not: nobody accepted it (else the history
    would begin with it), so the runs of it were let through in doubt, and the level before them still counts.

    Attributes:
        alert: the change that this run raises; None when it raises none.
        asked: whether the gate asked for a confirm run, to tell a change from an odd run.
        start, end: the runs of the level, as a slice of the history; with an open change for the worse those
            before it.
        held: how many runs of the history the gate still knows: those since the last change, at most its window.
        worse_before: whether such a change is open.
    """

    alert: Alert | None
    asked: bool
    start: int
    end: int
    held: int
    worse_before: bool


def level_of(
    value: float, past: Sequence[float], rule: DetectRule, *, higher_is_better: bool, confirm: float | None
) -> Level:
    """Judge the last run of a history, after the runs before it went through the same gate.

    Args:
        past: medians of accepted runs, oldest first; finite.
        confirm: what the confirm run of this run measured; None when there is none.
    """
    gate = Gate(higher_is_better, rule)
    start, end, since = 0, None, 0
    for index, one in enumerate(past):
        change = gate.judge(index, one, lambda: None)
        if change is None:
            continue
        since = change.since
        if change.direction == "worse":
            end = since if end is None else end
        elif end is None or _back(past[since : index + 1], past[start:end], rule.floor, higher_is_better):
            start, end = since, None
    before, held = gate.asked, min(len(past) - since, rule.window)
    alert = gate.judge(len(past), value, lambda: confirm)
    reach = len(past) if end is None else end
    return Level(alert, gate.asked > before, start, reach, held, end is not None)


def _back(now: Sequence[float], level: Sequence[float], floor: float, higher_is_better: bool) -> bool:
    """Whether runs are as good as an earlier level again, or better."""
    before = median(level)
    worse = (before - median(now)) if higher_is_better else (median(now) - before)
    return worse <= floor * abs(before)
