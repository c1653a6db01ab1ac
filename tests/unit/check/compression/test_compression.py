"""ran.compression and compression.speed: an export that only claims to be quantized or pruned is red."""

from types import ModuleType

import pytest

from tipcflow.check import CheckContext, judge
from tipcflow.check.compression.content import ran_compression
from tipcflow.check.compression.speed import compression_speed
from tipcflow.domain import (
    CheckResult,
    Compression,
    Facts,
    LegKey,
    ModelContent,
    OutputFile,
    Phase,
    Status,
    StepKind,
)

FP32 = ModelContent(
    program="inference.json", operators={"conv2d": 30}, layers=40, tensors=90, parameters=98000, weights=90000,
    zeros=0, types={"float32": 98000},
)  # fmt: skip
INT8 = FP32.model_copy(update={"quantized_layers": 39, "types": {"int8": 90000, "float32": 9000}})
NARROW = FP32.model_copy(update={"parameters": 70000, "weights": 62000})
SPARSE = FP32.model_copy(update={"zeros": 45000})


def compressed(
    build: ModuleType, declared: Compression, content: ModelContent | None, plain: ModelContent | None = FP32
) -> Facts:
    """The good run with a second variant `c` whose export declares a compressed model."""
    more, records = [], []
    for step in build.steps():
        if step.variant:
            rename = {"id": step.id.replace("v/", "c/"), "variant": "c"}
            rename["after"] = tuple(name.replace("v/", "c/") for name in step.after)
            rename["compression"] = declared if step.kind is StepKind.EXPORT else None
            more.append(step.model_copy(update=rename))
    for record in build.records():
        model = plain if record.step == build.EXPORT else None
        records.append(record.model_copy(update={"outputs": outputs(model, 400_000)} if model else {}))
        other = record.model_copy(update={"step": record.step.replace("v/", "c/")})
        model = content if record.step == build.EXPORT else None
        records.append(other.model_copy(update={"outputs": outputs(model, 110_000)} if model else {}))
    facts = build.facts(plan=build.plan(steps=(*build.steps(), *more)), records=tuple(records))
    statuses = {name.replace("v/", "c/"): status for name, status in facts.step_status.items()}
    legs = {LegKey(key.step.replace("v/", "c/"), key.leg): status for key, status in facts.leg_status.items()}
    return facts.model_copy(
        update={"step_status": {**facts.step_status, **statuses}, "leg_status": {**facts.leg_status, **legs}}
    )


def outputs(content: ModelContent, size: int) -> tuple[OutputFile, ...]:
    return (OutputFile(path="o/inference.pdiparams", exists=True, fresh=True, size=size, content=content),)


def judged(facts: Facts) -> CheckResult:
    (result,) = ran_compression(facts, CheckContext())
    assert result.step == "c/export"
    return result


def test_a_run_without_compression_has_no_result(build: ModuleType) -> None:
    assert ran_compression(build.facts(), CheckContext()) == []
    assert compression_speed(build.facts(), CheckContext()) == []


@pytest.mark.parametrize(
    ("declared", "content", "reason"),
    [
        ("quantized", INT8, "39 of 40 layers with weights have quantized inputs; 110 kB instead of 400 kB"),
        ("pruned", NARROW, "70000 parameters instead of 98000 (-29%); 110 kB instead of 400 kB"),
        ("pruned", SPARSE, "50% of 90000 weights are 0, 0% without pruning"),
    ],
)
def test_compressed_models_pass_with_their_numbers(
    build: ModuleType, declared: str, content: ModelContent, reason: str
) -> None:
    result = judged(compressed(build, Compression(declared), content))
    assert (result.status, result.reason) == (Status.PASS, reason)
    assert result.values["compared_with"]["parameters"] == 98000


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        (
            "quantized",
            "declared: quantized; inference.json is fp32: 0 of 40 layers with weights have quantized inputs",
        ),
        ("pruned", "declared: pruned; 98000 parameters instead of 98000, 0.0% zeros instead of 0.0%"),
    ],
)
def test_an_export_that_only_claims_compression_fails_the_run(
    build: ModuleType, declared: str, reason: str
) -> None:
    facts = compressed(build, Compression(declared), FP32)
    assert (judged(facts).status, judged(facts).reason) == (Status.FAILED, reason)
    results = judge(facts, CheckContext())
    assert [result for result in results if result.check == "ran.compression"] == [judged(facts)]
    assert judged(facts).gating


def test_pruning_without_a_plain_model_needs_zeros(build: ModuleType) -> None:
    unread = FP32.model_copy(update={"unread": "Unreadable: no program next to the parameters"})
    assert judged(compressed(build, Compression.PRUNED, SPARSE, unread)).reason == "50% of 90000 weights are 0"
    result = judged(compressed(build, Compression.PRUNED, NARROW, unread))
    assert result.status is Status.INSUFFICIENT_DATA
    assert result.reason == "no export without pruning in this run: fewer parameters are not proven"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "no file of parameters (.pdiparams)"),
        (ModelContent(unread="Unreadable: no program"), "o/inference.pdiparams: Unreadable: no program"),
    ],
)
def test_unreadable_models_decide_nothing(build: ModuleType, content: ModelContent | None, why: str) -> None:
    result = judged(compressed(build, Compression.QUANTIZED, content))
    assert (result.status, result.reason) == (
        Status.INSUFFICIENT_DATA,
        f"content of the exported model unknown: {why}",
    )


@pytest.mark.parametrize(
    ("time", "status", "change"),
    [(3.15, Status.PASS, "3.15 ms instead of 6.3 ms"), (7.56, Status.REGRESSION, "7.56 ms instead of 6.3 ms")],
)
def test_times_are_compared_with_the_plain_model(
    build: ModuleType, time: float, status: Status, change: str
) -> None:
    facts = compressed(build, Compression.QUANTIZED, INT8)
    sample = build.series(
        (time,), "inference_time", step="c/infer_cpu", rank=-1, leg=build.ON, phase=Phase.INFER, unit="ms"
    )
    facts = facts.model_copy(update={"measurements": (*facts.measurements, *sample)})
    (result,) = compression_speed(facts, CheckContext())
    assert (result.status, result.leg, result.gating) == (status, build.ON, False)
    assert result.reason == f"{change} without compression ({time / 6.3:.2f} x)"
