"""Is inference with a compressed model as fast as with the model without compression?"""

from tipcflow.check.compression.exports import compressed_exports, plain_exports
from tipcflow.check.context import CheckContext
from tipcflow.check.select import format_amount, leg_key
from tipcflow.domain import CheckResult, Facts, Leg, LegKey, MetricKey, Status, Step, medians_of
from tipcflow.domain.numbers.measured import ValueKey

NAME = "compression.speed"
_METRIC = "inference_time"


def compression_speed(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per leg of a compressed model with a twin in this run: the leg of the plain model with the same
    device, oneDNN, TensorRT, threads and batch size. Never gating: both are measured once, on shared machines."""
    medians = medians_of(facts.measurements) if any(compressed_exports(facts)) else {}
    return [
        _judged(step, leg, twin, medians)
        for export in compressed_exports(facts)
        for step in _inference(facts, export)
        for leg in _with_time(facts, step, medians)
        for twin in _twins(facts, export, leg, medians)
    ]


def _inference(facts: Facts, export: Step) -> list[Step]:
    return [step for step in facts.plan.steps if step.legs and export.id in step.after]


def _with_time(facts: Facts, step: Step, medians: dict[MetricKey, float]) -> list[Leg]:
    """The step's legs that passed and reported a time."""
    return [
        leg
        for leg in step.legs
        if facts.leg_status.get(leg_key(step, leg.id)) is Status.PASS
        and MetricKey(step.id, leg.id, _METRIC) in medians
    ]


def _twins(facts: Facts, export: Step, leg: Leg, medians: dict[MetricKey, float]) -> list[LegKey]:
    """The first such leg of the most similar plain export, in a list; fp32 before other precisions."""
    twins = [
        (other.precision not in ("fp32", ""), leg_key(step, other.id))
        for plain in plain_exports(facts, export)[:1]
        for step in _inference(facts, plain)
        for other in _with_time(facts, step, medians)
        if _settings(other) == _settings(leg)
    ]
    return [key for _, key in sorted(twins, key=lambda pair: pair[0])[:1]]


def _settings(leg: Leg) -> tuple[object, ...]:
    return (leg.device, leg.onednn, leg.tensorrt, leg.threads, leg.batch_size)


def _judged(step: Step, leg: Leg, twin: LegKey, medians: dict[MetricKey, float]) -> CheckResult:
    value, base = medians[MetricKey(step.id, leg.id, _METRIC)], medians[MetricKey(twin.step, twin.leg, _METRIC)]
    ratio = value / base if base else 0.0
    change = f"{format_amount(round(value, 3), 'ms')} instead of {format_amount(round(base, 3), 'ms')} without"
    return CheckResult(
        check=NAME,
        status=Status.PASS if ratio <= 1 else Status.REGRESSION,
        reason=f"{change} compression ({ratio:.2f} x)",
        step=step.id,
        leg=leg.id,
        metric=_METRIC,
        gating=False,
        values={ValueKey.COMPARED_WITH: str(twin), ValueKey.RATIO: ratio},
    )
