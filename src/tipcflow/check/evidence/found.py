"""Found evidence of a run, as keys 'kind|step|leg|what'."""

import math
from collections.abc import Iterable, Mapping

from tipcflow.check.evidence.reports import proves
from tipcflow.check.select import inference_steps, iterations, leg_key, loss_names, passed, training_steps
from tipcflow.config.suite import Prints
from tipcflow.domain import (
    Evidence,
    Facts,
    Measurement,
    PastRun,
    Phase,
    Step,
    StepKind,
    last_attempts,
    numbers_of,
    without_repeat,
)
from tipcflow.domain.numbers.history import plain_metric

# Measured by the node runner: a missing value is not evidence about the model.
_OURS = frozenset({"peak_rss", "peak_gpu", "wall_time"})


def found_in(facts: Facts, prints: Prints) -> frozenset[str]:
    """The evidence that the last attempts of the steps and legs that passed have left, without their repeats."""
    keys = set()
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
        if not step.legs and passed(facts, step.id, "") and facts.predictions.get(step.id):
            keys.add(_key(Evidence.PREDICTIONS, step))
    return frozenset(keys) | _metrics(numbers_of(_measured(facts)))


def ranks_with(facts: Facts, step: Step, prints: Prints) -> set[tuple[Evidence, int]]:
    """(kind of evidence, rank) of a training's processes."""
    logged = iterations(facts, step)
    names = loss_names(facts, step, prints.losses)
    found = {(Evidence.ITERATIONS, rank) for _, rank in logged}
    found |= {
        (Evidence.LOSS, rank) for (_, rank), lines in logged.items() if any(one.metric in names for one in lines)
    }
    found |= {(Evidence.RANK, report.rank) for report in facts.ranks.get(step.id, ())}
    return {(kind, max(0, rank)) for kind, rank in found}


def of_leg(facts: Facts, step: Step, leg: str) -> set[Evidence]:
    """The kinds of evidence that a leg's log shows."""
    key = leg_key(step, leg)
    found = {
        kind
        for kind, told in ((Evidence.ENGINE, facts.engine), (Evidence.PREDICTIONS, facts.predictions))
        if told.get(key)
    }
    if proves(facts, step, leg):
        found.add(Evidence.AUTOLOG)
    return found


def evaluated(facts: Facts, step: Step) -> bool:
    """Whether an evaluation's last attempt printed any metric."""
    return any(one.step == step.id and one.phase is Phase.EVAL for one in last_attempts(facts.measurements))


def known_of(past: PastRun) -> frozenset[str]:
    """What an earlier run has proven; of one that was judged before that was kept, what its numbers tell."""
    if past.found:
        return frozenset(past.found)
    keys = set(_metrics(past.medians))
    for key in past.losses:
        step, _, rank, *_ = key.split("|")
        if rank.isdigit():
            step = without_repeat(step)
            keys |= {f"{kind.value}|{step}||{rank}" for kind in (Evidence.ITERATIONS, Evidence.LOSS)}
    return frozenset(keys)


def _measured(facts: Facts) -> Iterable[Measurement]:
    kinds = {step.id: step.kind for step in facts.plan.steps}
    return (
        one
        for one in facts.measurements
        if passed(facts, one.step, one.leg) and kinds.get(one.step) is not StepKind.PREPARE
    )


def _metrics(numbers: Mapping[str, float]) -> frozenset[str]:
    """'metric|step|leg|name' of the numbers that were measured: a time of zero was not."""
    found = set()
    for key, value in numbers.items():
        name = plain_metric(key.rpartition("|")[2])
        if name not in _OURS and math.isfinite(value) and not (name == "inference_time" and value <= 0):
            found.add(f"{Evidence.METRIC.value}|{key}")
    return frozenset(found)


def _key(kind: Evidence, step: Step, leg: str = "", what: str = "") -> str:
    return f"{kind.value}|{without_repeat(step.id)}|{leg}|{what}"
