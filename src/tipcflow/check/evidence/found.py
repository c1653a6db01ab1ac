"""Found evidence of a run."""

import math
from collections.abc import Iterable, Mapping

from tipcflow.check.evidence.reports import proves
from tipcflow.check.select import inference_steps, iterations, leg_key, loss_names, passed, training_steps
from tipcflow.config.suite import Prints
from tipcflow.domain import (
    Evidence,
    EvidenceKey,
    Facts,
    LegKey,
    Measurement,
    MetricKey,
    PastRun,
    Phase,
    Step,
    StepKind,
    last_attempts,
    numbers_of,
    plain_metric,
    without_repeat,
)
from tipcflow.domain.keys import SLOWEST
from tipcflow.domain.numbers.metrics import PROBES

# Measured by the node runner: a missing value is not evidence about the model.
_OF_RUNNER = frozenset({"peak_rss", "peak_gpu", "wall_time", *PROBES})


def is_of_runner(metric: str) -> bool:
    """Whether the node runner measures a metric (named as in `numbers_of`), and not the suite."""
    return plain_metric(metric) in _OF_RUNNER


def found_in(facts: Facts, prints: Prints) -> frozenset[EvidenceKey]:
    """The evidence that the last attempts of the steps and legs that passed have left, without their repeats."""
    keys: set[EvidenceKey] = set()
    for step in training_steps(facts):
        if passed(facts, step.id, ""):
            keys |= {_key(kind, step, "", str(rank)) for kind, rank in ranks_with(facts, step, prints)}
    for step in inference_steps(facts):
        keys |= {
            _key(kind, step, leg.id)
            for leg in step.legs
            if passed(facts, step.id, leg.id)
            for kind in of_leg(facts, step, leg.id)
        }
    for step in facts.plan.steps:
        if not step.legs and passed(facts, step.id, "") and facts.predictions.get(LegKey(step.id)):
            keys.add(_key(Evidence.PREDICTIONS, step))
    return frozenset(keys) | _metrics(numbers_of(_measured(facts)))


def ranks_with(facts: Facts, step: Step, prints: Prints) -> set[tuple[Evidence, int]]:
    """(kind of evidence, rank) of a training's processes."""
    logged = iterations(facts, step)
    names = loss_names(facts, step, prints.losses)
    evidence = {(Evidence.ITERATIONS, rank) for _, rank in logged}
    evidence |= {
        (Evidence.LOSS, rank) for (_, rank), lines in logged.items() if any(line.metric in names for line in lines)
    }
    evidence |= {(Evidence.RANK, report.rank) for report in facts.ranks.get(step.id, ())}
    return {(kind, max(0, rank)) for kind, rank in evidence}


def of_leg(facts: Facts, step: Step, leg: str) -> set[Evidence]:
    """The kinds of evidence that a leg's log shows."""
    key = leg_key(step, leg)
    kinds = {
        kind
        for kind, reports in ((Evidence.ENGINE, facts.engine), (Evidence.PREDICTIONS, facts.predictions))
        if reports.get(key)
    }
    if proves(facts, step, leg):
        kinds.add(Evidence.AUTOLOG)
    return kinds


def evaluated(facts: Facts, step: Step) -> bool:
    """Whether an evaluation's last attempt printed any metric."""
    return any(
        sample.step == step.id and sample.phase is Phase.EVAL for sample in last_attempts(facts.measurements)
    )


def known_of(past: PastRun) -> frozenset[EvidenceKey]:
    """What an earlier run has proven; of a run from before evidence was stored, what its metric values prove.

    Evidence has the metrics of the node runner only since they are expected; until then the values prove them.
    """
    keys = set(_metrics(past.medians))
    if past.found:
        return frozenset(past.found) | {key for key in keys if is_of_runner(key.what)}
    for key in past.losses:
        if key.curve.rank >= 0:
            step, rank = without_repeat(key.step), str(key.curve.rank)
            keys |= {EvidenceKey(kind, step, what=rank) for kind in (Evidence.ITERATIONS, Evidence.LOSS)}
    return frozenset(keys)


def _measured(facts: Facts) -> Iterable[Measurement]:
    kinds = {step.id: step.kind for step in facts.plan.steps}
    return (
        measurement
        for measurement in facts.measurements
        if passed(facts, measurement.step, measurement.leg) and kinds.get(measurement.step) is not StepKind.PREPARE
    )


def _metrics(numbers: Mapping[MetricKey, float]) -> frozenset[EvidenceKey]:
    """The metrics that were measured: a time of zero was not."""
    keys = set()
    for key, value in numbers.items():
        name = key.plain_metric
        if key.metric.endswith(SLOWEST):
            continue  # depends on the number of samples
        if math.isfinite(value) and not (name == "inference_time" and value <= 0):
            keys.add(EvidenceKey(Evidence.METRIC, key.step, key.leg, key.metric))
    return frozenset(keys)


def _key(kind: Evidence, step: Step, leg: str = "", what: str = "") -> EvidenceKey:
    return EvidenceKey(kind, without_repeat(step.id), leg, what)
