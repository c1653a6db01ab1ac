"""What is remembered of an earlier run when a later one is judged."""

from collections.abc import Iterable
from statistics import median

from tipcflow.domain.base import Frozen
from tipcflow.domain.measurement import Measurement, Phase
from tipcflow.domain.metrics import metric


class PastRun(Frozen):
    """One accepted run of the same chain, mode and environment class.

    Attributes:
        seed, framework, suite_sha256: what has to be equal before losses can be expected to be.
        medians: 'step|leg|metric' -> median over all samples of the run, in the metric's unit (`medians_of`).
        losses: 'step|node|rank' -> the training losses in the order they were logged (`losses_of`).
    """

    run: str
    seed: int | None = None
    framework: str = ""
    suite_sha256: str = ""
    medians: dict[str, float] = {}
    losses: dict[str, tuple[float, ...]] = {}


def medians_of(measurements: Iterable[Measurement]) -> dict[str, float]:
    """'step|leg|metric' -> median over ranks, nodes and samples of the step's last attempt.

    Metrics of the evaluation phase are called `eval.<metric>`, memory of all processes together (rank -1)
    `<metric>.all`. The first sample holds the warm-up; a median does not mind. nan and inf are left out, and a key
    that has nothing else is missing.
    """
    values: dict[str, list[float]] = {}
    for one in last_attempts(measurements):
        if abs(one.value) < float("inf"):
            values.setdefault(f"{one.step}|{one.leg}|{_name(one)}", []).extend([one.value] * one.stands_for)
    return {key: median(found) for key, found in sorted(values.items())}


def _name(one: Measurement) -> str:
    if one.phase is Phase.EVAL:
        return f"eval.{one.metric}"
    together = one.phase is Phase.RESOURCE and one.rank < 0 and metric(one.metric).family == "memory"
    return f"{one.metric}.all" if together else one.metric


def losses_of(measurements: Iterable[Measurement]) -> dict[str, tuple[float, ...]]:
    """'step|node|rank' -> training losses of the last attempt, in the order they were logged; nan and inf kept.

    Losses that were rolled up are left out: their order is not known any more.
    """
    found: dict[str, list[Measurement]] = {}
    for one in last_attempts(measurements):
        if one.phase is Phase.TRAIN and one.metric == "loss" and one.stands_for == 1:
            found.setdefault(f"{one.step}|{one.node}|{one.rank}", []).append(one)
    return {
        key: tuple(one.value for one in sorted(losses, key=lambda one: one.ordinal))
        for key, losses in sorted(found.items())
    }


def last_attempts(measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """Only what the last attempt of each step measured."""
    kept = tuple(measurements)
    last: dict[str, int] = {}
    for one in kept:
        last[one.step] = max(one.attempt, last.get(one.step, one.attempt))
    return tuple(one for one in kept if one.attempt == last[one.step])
