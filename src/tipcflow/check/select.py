"""Selections from a run's facts for checks."""

import math
from collections.abc import Collection
from fnmatch import fnmatchcase

from tipcflow.domain import (
    ExitRecord,
    Facts,
    LegKey,
    Measurement,
    MetricKey,
    Phase,
    Status,
    Step,
    StepKind,
    last_attempts,
    without_repeat,
)
from tipcflow.domain.numbers.metrics import is_loss, metric
from tipcflow.domain.numbers.units import size

RankKey = tuple[str, int]


def training_steps(facts: Facts) -> tuple[Step, ...]:
    """The planned training steps that the cluster supports."""
    return tuple(step for step in facts.plan.steps if step.kind is StepKind.TRAIN and not step.not_run)


def inference_steps(facts: Facts) -> tuple[Step, ...]:
    """The planned steps that have legs."""
    return tuple(step for step in facts.plan.steps if step.legs)


def iterations(facts: Facts, step: Step) -> dict[RankKey, tuple[Measurement, ...]]:
    """(node, rank) -> all measurements in training lines of the step's last attempt, in order."""
    lines: dict[RankKey, list[Measurement]] = {}
    for sample in last_attempts(facts.measurements):
        if sample.step == step.id and sample.phase is Phase.TRAIN:
            lines.setdefault((sample.node, sample.rank), []).append(sample)
    return {key: tuple(sorted(lines[key], key=lambda sample: sample.ordinal)) for key in sorted(lines)}


def loss_names(facts: Facts, step: Step, listed: Collection[str] = ()) -> tuple[str, ...]:
    """The names of the losses that the step's training lines have, sorted.

    Args:
        listed: patterns of further names that the suite declares to be losses.
    """
    names = {sample.metric for logged in iterations(facts, step).values() for sample in logged}
    return tuple(sorted(name for name in names if is_loss(name, listed)))


def matches_any(name: str, patterns: Collection[str]) -> bool:
    """Whether one of the patterns (`*` and `?` match) names a metric."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def losses(facts: Facts, step: Step, name: str = "loss") -> dict[RankKey, tuple[Measurement, ...]]:
    """(node, rank) -> one of the step's training losses in the order in which it was logged."""
    return {
        key: chosen
        for key, logged in iterations(facts, step).items()
        if (chosen := tuple(sample for sample in logged if sample.metric == name))
    }


def trained(facts: Facts, step: Step) -> bool:
    """Whether the training step succeeded and logged iterations: an exit code alone proves nothing."""
    return facts.step_status.get(step.id) is Status.PASS and bool(iterations(facts, step))


def passed(facts: Facts, step: str, leg: str) -> bool:
    """Whether a step, or a leg of it, succeeded; measurements of others are not comparable."""
    status = facts.leg_status.get(LegKey(step, leg)) if leg else facts.step_status.get(step)
    return status is Status.PASS


def repeats_of(facts: Facts, step: str) -> tuple[Step, ...]:
    """The planned steps that a value of `numbers_of` covers: all repeats of one, or the step itself."""
    return tuple(planned for planned in facts.plan.steps if without_repeat(planned.id) == step)


def records(facts: Facts, step_id: str, leg: str = "") -> tuple[ExitRecord, ...]:
    """The exit records of a step's job on every node, or of one leg: those of the last attempt."""
    matches = [record for record in facts.records if record.step == step_id and record.leg == leg]
    last = max((record.attempt for record in matches), default=1)
    return tuple(record for record in matches if record.attempt == last)


# Metrics that are fractions or percentages.
SHARES = frozenset({"top1", "top5", "acc", "auc", "mIoU", "Kappa", "Dice", "Auc_roc", "mAP", "AP", "AP50"})
SHARES |= {"AP75", "bbox_map", "precision", "recall", "hmean", "norm_edit_dis", "recall1", "recall5"}
# Families whose units differ between suites: images/s or samples/s, fractions or percentages.
_PRINTED = frozenset({"speed", "quality"})


def printed_units(facts: Facts, accuracy: str = "") -> dict[MetricKey, str]:
    """Key without rank -> the unit of a speed or accuracy in the log (`23.5 images/s`, `91.7 %`).

    Args:
        accuracy: the suite's `prints.accuracy`, which replaces the printed unit of fractions and percentages.
    """
    units: dict[tuple[str, str, str], str] = {}
    for sample in facts.measurements:
        unit = accuracy.replace("1", "") if accuracy and sample.metric in SHARES else sample.unit
        if unit:
            units.setdefault((sample.step, sample.leg, sample.metric), unit)
    return {
        MetricKey(without_repeat(step), leg, name): unit
        for (step, leg, name), unit in units.items()
        if metric(name).family in _PRINTED
    }


def leg_key(step: Step, leg: str) -> LegKey:
    """The key of a leg in facts."""
    return LegKey(step.id, leg)


def format_number(value: float) -> str:
    """Format a number with up to six significant digits, without an exponent if possible."""
    return f"{value:.6g}" if math.isfinite(value) else str(value)


def format_amount(value: float, unit: str) -> str:
    """A number with its unit; bytes as KiB, MiB or GiB."""
    if unit == "bytes":
        return size(value)
    return f"{format_number(value)} {unit}".rstrip()
