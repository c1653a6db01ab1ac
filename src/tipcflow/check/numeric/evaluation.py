"""Does the evaluation step agree with the training's own evaluations?"""

import math

from tipcflow.check.context import CheckContext
from tipcflow.check.select import format_number, training_steps
from tipcflow.domain import CheckResult, Facts, Measurement, Phase, Status, StepKind, last_attempts
from tipcflow.domain.numbers.measured import ValueKey
from tipcflow.domain.numbers.metrics import Scope, scope_of
from tipcflow.domain.quarantine.signature import ReasonCode
from tipcflow.parse import metric

NAME = "accuracy.evaluation"
# Far: worse than the worst of the training's own by more than this share of it (a loss: more than twice as high),
# and by more than this part of the range.
_SHARE = 0.5
_RANGE = 0.05


def accuracy_evaluation(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per evaluation step and metric that its training evaluated, too. Both evaluate weights of
    the same training: the step is `failed` if it is far worse than each of the training's own."""
    results = []
    for training in training_steps(facts):
        own = _evaluations(facts, training.id)
        for step in facts.plan.steps:
            if step.kind is not StepKind.EVAL or step.variant != training.variant:
                continue
            if facts.step_status.get(step.id) is Status.PASS and facts.step_status.get(training.id) is Status.PASS:
                logged = _evaluations(facts, step.id)
                declared = context.prints.accuracy
                results += [
                    _judged(step.id, name, own[name], logged[name], declared) for name in logged if name in own
                ]
    return results


def _evaluations(facts: Facts, step: str) -> dict[str, list[Measurement]]:
    """Metric -> evaluations of the first rank that logged it, in their order."""
    evaluations: dict[str, list[Measurement]] = {}
    for sample in last_attempts(facts.measurements):
        definition = metric(sample.metric)
        judged = definition.family == "quality" and definition.better != "none" and math.isfinite(sample.value)
        is_best = scope_of(sample.metric) is Scope.BEST
        if sample.step == step and sample.phase is Phase.EVAL and judged and not is_best:
            evaluations.setdefault(sample.metric, []).append(sample)
    leads = {name: min(sample.rank for sample in many) for name, many in evaluations.items()}
    return {
        name: sorted((sample for sample in many if sample.rank == leads[name]), key=lambda sample: sample.ordinal)
        for name, many in evaluations.items()
    }


def _judged(step: str, name: str, own: list[Measurement], logged: list[Measurement], declared: str) -> CheckResult:
    higher = metric(name).better == "higher"
    value, worst = logged[-1].value, (min if higher else max)(evaluation.value for evaluation in own)
    floor = _RANGE * (100.0 if higher and _is_per_cent([*own, *logged], declared) else 1.0)
    behind = worst - value if higher else value - worst
    far = behind > max((_SHARE if higher else 1.0) * abs(worst), floor)
    values: dict[str, object] = {
        ValueKey.VALUE: value,
        ValueKey.WORST: worst,
        ValueKey.LAST: own[-1].value,
        "evaluations": len(own),
    }
    if far:
        values[ValueKey.CODE] = ReasonCode.FAR_WORSE
    shown = f"{name} {format_number(value)}, the training's own {format_number(own[-1].value)}"
    return CheckResult(
        check=NAME,
        status=Status.FAILED if far else Status.PASS,
        reason=f"{shown}: far worse" if far else shown,
        step=step,
        metric=name,
        values=values,
    )


def _is_per_cent(evaluations: list[Measurement], declared: str) -> bool:
    """Return whether values are per cent: as the suite file declares, else by their unit or a value above 1."""
    if declared:
        return declared == "%"
    return any(evaluation.unit == "%" or abs(evaluation.value) > 1 for evaluation in evaluations)
