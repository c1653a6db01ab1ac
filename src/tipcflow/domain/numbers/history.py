"""Data of earlier runs for the evaluation of a later run."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from math import fsum
from statistics import median
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, PlainSerializer

from tipcflow.domain.base import Frozen
from tipcflow.domain.check import LogLines
from tipcflow.domain.keys import (
    ALL,
    EVAL,
    RANK,
    SLOWEST,
    CurveKey,
    EvidenceKey,
    LegKey,
    LossKey,
    MetricKey,
    without_repeat,
)
from tipcflow.domain.numbers.changes import Origin
from tipcflow.domain.numbers.measurement import Measurement, Phase
from tipcflow.domain.numbers.metrics import by_iteration, is_loss, metric


def _each(values: Any) -> Any:
    return (values,) if isinstance(values, int | float) else values


def _stored(values: tuple[float, ...]) -> float | tuple[float, ...]:
    """The value of an only confirm run is stored as a number, which earlier versions read, too."""
    return values[0] if len(values) == 1 else values


# A leg that the newest runs left out is compared with older ones: this many times the runs of a baseline are
# searched.
LOOK_BACK = 5
# Values of a run's confirm runs, in their order.
ConfirmValues = Annotated[tuple[float, ...], BeforeValidator(_each), PlainSerializer(_stored)]


class PastRun(Frozen):
    """One accepted run of the same chain, mode and environment class.

    Attributes:
        seed, framework, suite_sha256: must be equal for losses to be equal.
        origin: versions and nodes of the run.
        medians: key -> the run's value, in the metric's unit (`numbers_of`).
        confirms: key -> the values of its confirm runs.
        found: the evidence of the run (`tipcflow.check.evidence.found_in`); empty if not stored.
        lines: step id -> number of recognized lines of its training logs.
        losses: curve -> the training losses in logged order (`losses_of`).
        parts: steps and legs, without repeats, for which the run counts; None for all.
    """

    run: str
    seed: int | None = None
    framework: str = ""
    suite_sha256: str = ""
    origin: Origin = Origin()
    medians: dict[MetricKey, float] = {}
    confirms: dict[MetricKey, ConfirmValues] = {}
    found: tuple[EvidenceKey, ...] = ()
    lines: dict[str, LogLines] = {}
    losses: dict[LossKey, tuple[float, ...]] = {}
    parts: frozenset[LegKey] | None = None

    @property
    def measured(self) -> frozenset[LegKey]:
        """The steps and legs, without repeats, of which the run has values or evidence."""
        keys = {LegKey(without_repeat(key.step), key.leg) for key in self.medians}
        keys |= {LegKey(without_repeat(key.step), key.leg) for key in self.found}
        keys |= {LegKey(without_repeat(step)) for step in self.lines}
        return frozenset(keys | {LegKey(key.step) for key in keys})

    def counts_for(self, part: LegKey) -> bool:
        """Whether the run counts in comparisons of a step or leg: it executed it."""
        return self.parts is None or part in self.parts

    def of_parts(self, parts: Collection[LegKey]) -> Self:
        """Return the run as if it had executed only these steps and legs."""
        names = {key.step for key in parts if not key.leg}
        return self.model_copy(
            update={
                "medians": {key: own for key, own in self.medians.items() if LegKey(key.step, key.leg) in parts},
                "found": tuple(key for key in self.found if LegKey(key.step, key.leg) in parts),
                "lines": {step: own for step, own in self.lines.items() if without_repeat(step) in names},
                "losses": {key: own for key, own in self.losses.items() if without_repeat(key.step) in names},
                "parts": frozenset(parts),
            }
        )


def medians_of(measurements: Iterable[Measurement]) -> dict[MetricKey, float]:
    """Return key -> median over ranks, nodes and samples of the step's last attempt.

    Metrics of the evaluation phase are called `eval.<metric>`, memory of all processes together (rank -1)
    `<metric>.all`. The median is robust to the warm-up in the first sample. nan and inf are
    ignored, and a key without other values is missing.
    """
    values: dict[MetricKey, list[float]] = {}
    for sample in last_attempts(measurements):
        if abs(sample.value) < float("inf"):
            values.setdefault(MetricKey(sample.step, sample.leg, _name(sample)), []).extend(
                [sample.value] * sample.stands_for
            )
    return {key: median(numbers) for key, numbers in sorted(values.items())}


def _name(sample: Measurement) -> str:
    if sample.phase is Phase.EVAL:
        return f"{EVAL}{sample.metric}"
    together = sample.phase is Phase.RESOURCE and sample.rank < 0 and metric(sample.metric).family == "memory"
    return f"{sample.metric}{ALL}" if together else sample.metric


# The first 50 of 150 iterations are excluded: DLPerf's rule for training speeds.
_WARM_UP_SHARE, _WARM_UP = 3, 50
# A mean of fewer samples depends on single ones.
_ENOUGH = 20
_TRIMMED = 0.05


def numbers_of(measurements: Iterable[Measurement]) -> dict[MetricKey, float]:
    """Return key -> the run's value for comparisons: the median over repeats, each the
    median over ranks, nodes and samples of its last attempt.

    Training speeds exclude the warm-up: the first third of a rank's samples, at most 50 samples (source of the
    rule: DLPerf measures from the 50th of 150 iterations on). For evaluations (`eval.<metric>`) the last value of
    rank 0, or without a rank, is used. Memory is per rank, `<metric>.rank<N>`, or of all processes together,
    `<metric>.all`. nan and inf are ignored, and a key without other values is missing.

    The median does not change if a third of the iterations, or one of four ranks, is slow. `<metric>.slowest` is
    the mean of the slowest rank without the largest and smallest 5 % of its samples, for at least 20 samples.
    """
    values: dict[MetricKey, list[float]] = {}
    ranks: dict[MetricKey, list[float]] = {}
    for series in _series(measurements).values():
        first = series[0]
        finite = [sample for sample in _counted(series) if abs(sample.value) < float("inf")]
        if finite:
            key = MetricKey(first.step, first.leg, _number_name(first))
            samples = [sample.value for sample in finite for _ in range(sample.stands_for)]
            values.setdefault(key, []).extend(samples)
            if first.phase is Phase.TRAIN and by_iteration(first.metric) and len(samples) >= _ENOUGH:
                ranks.setdefault(key.of(f"{key.metric}{SLOWEST}"), []).append(_trimmed_mean(samples))
    for key, means in ranks.items():
        values[key] = [min(means) if metric(key.plain_metric).better == "higher" else max(means)]
    repeats: dict[MetricKey, list[float]] = {}
    for key, numbers in values.items():
        repeats.setdefault(replace(key, step=without_repeat(key.step)), []).append(median(numbers))
    return {key: median(medians) for key, medians in sorted(repeats.items())}


def _trimmed_mean(samples: list[float]) -> float:
    """Return the mean without the largest and smallest samples, which are not a property of the whole training."""
    cut = int(len(samples) * _TRIMMED)
    trimmed = sorted(samples)[cut : len(samples) - cut]
    return fsum(trimmed) / len(trimmed)


_Key = tuple[str, str, str, int, str, Phase]


def _series(measurements: Iterable[Measurement]) -> dict[_Key, list[Measurement]]:
    """Return the values by metric and rank, in logged order; for evaluations only those of the lowest rank."""
    series: dict[_Key, list[Measurement]] = {}
    for sample in last_attempts(measurements):
        series.setdefault(
            (sample.step, sample.leg, sample.node, sample.rank, sample.metric, sample.phase), []
        ).append(sample)
    lead: dict[tuple[str, str], int] = {}
    for step, _, _, rank, name, phase in series:
        if phase is Phase.EVAL:
            lead[step, name] = min(rank, lead.get((step, name), rank))
    return {
        key: sorted(samples, key=lambda sample: sample.ordinal)
        for key, samples in series.items()
        if key[5] is not Phase.EVAL or key[3] == lead[key[0], key[4]]
    }


def _counted(series: list[Measurement]) -> list[Measurement]:
    first = series[0]
    if first.phase is Phase.EVAL:
        return series[-1:]
    if first.phase is Phase.TRAIN and metric(first.metric).family == "speed":
        return series[min(_WARM_UP, len(series) // _WARM_UP_SHARE) :]
    return series


def _number_name(sample: Measurement) -> str:
    memory = sample.phase is Phase.RESOURCE and metric(sample.metric).family == "memory"
    return f"{sample.metric}{RANK}{sample.rank}" if memory and sample.rank >= 0 else _name(sample)


def losses_of(
    measurements: Iterable[Measurement], listed: Collection[str] = ()
) -> dict[LossKey, tuple[float, ...]]:
    """Return curve -> training losses of the last attempt, in logged order, including nan and inf.

    For a training without a metric `loss`, each of its losses is a curve. Rolled-up
    losses are excluded, because their order is unknown.

    Args:
        listed: patterns of further names that the suite declares to be losses.
    """
    curves: dict[LossKey, list[Measurement]] = {}
    logged = [
        sample
        for sample in last_attempts(measurements)
        if sample.phase is Phase.TRAIN and is_loss(sample.metric, listed)
    ]
    total = {sample.step for sample in logged if sample.metric == "loss"}
    for sample in logged:
        if sample.stands_for == 1 and (sample.metric == "loss" or sample.step not in total):
            curve = CurveKey(sample.node, sample.rank, "" if sample.metric == "loss" else sample.metric)
            curves.setdefault(LossKey(sample.step, curve), []).append(sample)
    return {
        key: tuple(sample.value for sample in sorted(losses, key=lambda sample: sample.ordinal))
        for key, losses in sorted(curves.items())
    }


def last_attempts(measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """Return only the measurements of each step's last attempt."""
    measured = tuple(measurements)
    last: dict[str, int] = {}
    for measurement in measured:
        last[measurement.step] = max(measurement.attempt, last.get(measurement.step, measurement.attempt))
    return tuple(measurement for measurement in measured if measurement.attempt == last[measurement.step])
