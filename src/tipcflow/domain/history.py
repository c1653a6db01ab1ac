"""What is remembered of an earlier run when a later one is judged."""

from collections.abc import Iterable
from statistics import median

from tipcflow.domain.base import Frozen
from tipcflow.domain.measurement import Measurement, Phase


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

    Metrics of the evaluation phase are called `eval.<metric>`. Where a metric has values per rank, the sum over
    ranks (rank -1) is left out. The first sample holds the warm-up; a median does not mind. nan and inf are left
    out, and a key that has nothing else is missing.
    """
    values: dict[str, list[float]] = {}
    sums: dict[str, list[float]] = {}
    for one in last_attempts(measurements):
        name = f"eval.{one.metric}" if one.phase is Phase.EVAL else one.metric
        if abs(one.value) < float("inf"):
            kept = sums if one.phase is Phase.RESOURCE and one.rank < 0 else values
            kept.setdefault(f"{one.step}|{one.leg}|{name}", []).append(one.value)
    return {key: median(found) for key, found in sorted({**sums, **values}.items())}


def losses_of(measurements: Iterable[Measurement]) -> dict[str, tuple[float, ...]]:
    """'step|node|rank' -> training losses of the last attempt, in the order they were logged; nan and inf kept."""
    found: dict[str, list[Measurement]] = {}
    for one in last_attempts(measurements):
        if one.phase is Phase.TRAIN and one.metric == "loss":
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
