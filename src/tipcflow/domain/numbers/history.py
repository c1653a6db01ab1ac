"""Data of earlier runs for the evaluation of a later run."""

import re
from collections.abc import Iterable
from statistics import median

from tipcflow.domain.base import Frozen
from tipcflow.domain.check import LogLines
from tipcflow.domain.numbers.changes import Origin
from tipcflow.domain.numbers.measurement import Measurement, Phase
from tipcflow.domain.numbers.metrics import is_loss, metric

# A run with this document is not compared and joins no history; `why` is the reason.
INCOMPARABLE = "incomparable"


class PastRun(Frozen):
    """One accepted run of the same chain, mode and environment class.

    Attributes:
        seed, framework, suite_sha256: must be equal for losses to be equal.
        origin: versions and nodes of the run.
        medians: 'step|leg|metric' -> the run's value, in the metric's unit (`numbers_of`).
        found: the evidence of the run (`tipcflow.check.evidence.found_in`); empty if not stored.
        lines: step id -> number of recognised lines of its training logs.
        losses: 'step|node|rank' -> the training losses in logged order (`losses_of`).
    """

    run: str
    seed: int | None = None
    framework: str = ""
    suite_sha256: str = ""
    origin: Origin = Origin()
    medians: dict[str, float] = {}
    found: tuple[str, ...] = ()
    lines: dict[str, LogLines] = {}
    losses: dict[str, tuple[float, ...]] = {}


def medians_of(measurements: Iterable[Measurement]) -> dict[str, float]:
    """'step|leg|metric' -> median over ranks, nodes and samples of the step's last attempt.

    Metrics of the evaluation phase are called `eval.<metric>`, memory of all processes together (rank -1)
    `<metric>.all`. The median is robust to the warm-up in the first sample. nan and inf are
    ignored, and a key without other values is missing.
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


# The first 50 of 150 iterations are excluded: DLPerf's rule for training speeds.
_WARM_UP_SHARE, _WARM_UP = 3, 50
_REPEAT = re.compile(r"_repeat_\d+(?=/|$)")
_RANK = ".rank"


def without_repeat(step: str) -> str:
    """Return a step's id without the repeat: `norm_train_repeat_2/train` is a repeat of `norm_train/train`."""
    return _REPEAT.sub("", step)


def plain_metric(name: str) -> str:
    """Return the metric of a name in `numbers_of`: `peak_rss` for `peak_rss.rank3`."""
    return name.removesuffix(".all").partition(_RANK)[0].removeprefix("eval.")


def numbers_of(measurements: Iterable[Measurement]) -> dict[str, float]:
    """'step|leg|metric' -> the run's value for comparisons: the median over repeats, each the
    median over ranks, nodes and samples of its last attempt.

    Training speeds exclude the warm-up: the first third of a rank's samples, at most 50 samples (source of the
    rule: DLPerf measures from the 50th of 150 iterations on). For evaluations (`eval.<metric>`) the last value of
    rank 0, or without a rank, is used. Memory is per rank, `<metric>.rank<N>`, or of all processes together,
    `<metric>.all`. nan and inf are ignored, and a key without other values is missing.
    """
    values: dict[tuple[str, str], list[float]] = {}
    for several in _series(measurements).values():
        one = several[0]
        kept = [sample for sample in _counted(several) if abs(sample.value) < float("inf")]
        if kept:
            key = (one.step, f"{one.leg}|{_number_name(one)}")
            values.setdefault(key, []).extend(sample.value for sample in kept for _ in range(sample.stands_for))
    repeats: dict[str, list[float]] = {}
    for (step, rest), found in values.items():
        repeats.setdefault(f"{without_repeat(step)}|{rest}", []).append(median(found))
    return {key: median(found) for key, found in sorted(repeats.items())}


_Key = tuple[str, str, str, int, str, Phase]


def _series(measurements: Iterable[Measurement]) -> dict[_Key, list[Measurement]]:
    """Return the values by metric and rank, in logged order; for evaluations only those of the lowest rank."""
    found: dict[_Key, list[Measurement]] = {}
    for one in last_attempts(measurements):
        found.setdefault((one.step, one.leg, one.node, one.rank, one.metric, one.phase), []).append(one)
    lead: dict[tuple[str, str], int] = {}
    for step, _, _, rank, name, phase in found:
        if phase is Phase.EVAL:
            lead[step, name] = min(rank, lead.get((step, name), rank))
    return {
        key: sorted(several, key=lambda one: one.ordinal)
        for key, several in found.items()
        if key[5] is not Phase.EVAL or key[3] == lead[key[0], key[4]]
    }


def _counted(several: list[Measurement]) -> list[Measurement]:
    one = several[0]
    if one.phase is Phase.EVAL:
        return several[-1:]
    if one.phase is Phase.TRAIN and metric(one.metric).family == "speed":
        return several[min(_WARM_UP, len(several) // _WARM_UP_SHARE) :]
    return several


def _number_name(one: Measurement) -> str:
    memory = one.phase is Phase.RESOURCE and metric(one.metric).family == "memory"
    return f"{one.metric}{_RANK}{one.rank}" if memory and one.rank >= 0 else _name(one)


def losses_of(measurements: Iterable[Measurement]) -> dict[str, tuple[float, ...]]:
    """'step|node|rank' -> training losses of the last attempt, in logged order, including nan and inf.

    For a training without a metric `loss`, the key is 'step|node|rank|metric' for each of its losses. Rolled-up
    losses are excluded, because their order is unknown.
    """
    found: dict[str, list[Measurement]] = {}
    logged = [one for one in last_attempts(measurements) if one.phase is Phase.TRAIN and is_loss(one.metric)]
    total = {one.step for one in logged if one.metric == "loss"}
    for one in logged:
        if one.stands_for == 1 and (one.metric == "loss" or one.step not in total):
            name = "" if one.metric == "loss" else f"|{one.metric}"
            found.setdefault(f"{one.step}|{one.node}|{one.rank}{name}", []).append(one)
    return {
        key: tuple(one.value for one in sorted(losses, key=lambda one: one.ordinal))
        for key, losses in sorted(found.items())
    }


def last_attempts(measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """Return only the measurements of each step's last attempt."""
    kept = tuple(measurements)
    last: dict[str, int] = {}
    for one in kept:
        last[one.step] = max(one.attempt, last.get(one.step, one.attempt))
    return tuple(one for one in kept if one.attempt == last[one.step])
