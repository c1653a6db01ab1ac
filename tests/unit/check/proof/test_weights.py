"""ran.weights: a training that changes nothing and an export of other weights are named."""

from types import ModuleType
from typing import Any

import pytest

from tipcflow.check import CheckContext
from tipcflow.check.proof.weights import ran_weights
from tipcflow.domain import CheckResult, Facts, ProcessReport, Status

FAILED, PASS, OPEN = Status.FAILED, Status.PASS, Status.INSUFFICIENT_DATA
TRAINED: dict[str, Any] = {
    "steps": 10,
    "dtype": "paddle.float32",
    "first": ("a0", "b0"),
    "last": ("a1", "b1"),
    "saved": ("a1", "b1", "m1"),
}
EXPORTED: dict[str, Any] = {"loaded": ("a1", "b1", "m1"), "exported": ("a1", "b1")}


def probed(build: ModuleType, training: dict[str, Any], export: dict[str, Any] | None = None) -> Facts:
    """Both ranks trained alike; the export is in a process of its own."""
    report = {build.TRAIN: ProcessReport(rank="0", **training)}
    if export is not None:
        report[build.EXPORT] = ProcessReport(**export)
    records = tuple(
        one.model_copy(update={"probed": True, "processes": (report[one.step],) if one.step in report else ()})
        for one in build.records()
    )
    return build.facts(records=records)


def judged(facts: Facts) -> tuple[CheckResult, CheckResult]:
    training, export = ran_weights(facts, CheckContext())
    return training, export


def test_weights_of_an_honest_run_pass(build: ModuleType) -> None:
    training, export = judged(probed(build, TRAINED, EXPORTED))
    assert (training.status, training.reason) == (PASS, "10 steps of an optimizer changed the parameters")
    assert (export.status, export.reason) == (PASS, "the export contains parameters of the training")
    assert (training.step, export.step) == (build.TRAIN, build.EXPORT)


@pytest.mark.parametrize(
    ("changes", "status", "why"),
    [
        ({"last": ("a0", "b0")}, FAILED, "10 steps of an optimizer changed no parameter"),
        ({"last": ("a0", "b0"), "steps": 2}, OPEN, "no change of a parameter was seen in 2 steps"),
        ({"last": ("a0", "b0"), "dtype": "float16"}, OPEN, "no change of a parameter was seen in 10 steps"),
        ({"steps": 0}, OPEN, "the probe saw no step of an optimizer: changes not proven"),
        ({"first": ()}, OPEN, "the probe saw no step of an optimizer: changes not proven"),
    ],
)
def test_training_must_change_weights(
    build: ModuleType, changes: dict[str, Any], status: Status, why: str
) -> None:
    result = judged(probed(build, {**TRAINED, **changes}, EXPORTED))[0]
    assert (result.status, result.reason) == (status, why)


@pytest.mark.parametrize(
    ("training", "export", "status", "why"),
    [
        (
            {},
            {"loaded": (), "exported": ("x", "y")},
            FAILED,
            "the export has no parameter of the training and loaded no weights: untrained",
        ),
        ({}, {"exported": ("a0", "b0")}, FAILED, "the export contains the parameters from before the training"),
        (
            {},
            {"loaded": ("p", "q"), "exported": ("p", "q")},
            FAILED,
            "the export loaded other weights than the training saved",
        ),
        # Quantized, fused or converted: loaded from the training, and changed.
        ({}, {"exported": ("x", "y")}, OPEN, "the export's parameters differ from those of the training"),
        # Frozen parameters are in both.
        ({}, {"loaded": (), "exported": ("x", "b1")}, PASS, "the export contains parameters of the training"),
        # An average of the parameters is saved beside them.
        ({"saved": ("a1", "ema")}, {"loaded": ("ema",), "exported": ("ema",)}, PASS, "parameters of the training"),
        # Saved in a way that the probe does not see.
        ({"saved": ()}, {"loaded": (), "exported": ("x",)}, OPEN, "differ from those of the training"),
        ({"dropped": 3}, {"loaded": ("p",), "exported": ("p",)}, OPEN, "differ from those of the training"),
        ({}, {"exported": ()}, OPEN, "the probe saw no parameters of the export: content not proven"),
        ({"saved": (), "last": ()}, {}, OPEN, "the probe saw no parameters of the training: content not proven"),
    ],
)
def test_export_must_contain_the_trained_weights(
    build: ModuleType, training: dict[str, Any], export: dict[str, Any], status: Status, why: str
) -> None:
    result = judged(probed(build, {**TRAINED, **training}, {**EXPORTED, **export}))[1]
    assert result.status is status, result.reason
    assert why in result.reason


def test_without_the_probe_nothing_is_reported(build: ModuleType) -> None:
    assert ran_weights(build.facts(), CheckContext()) == []


def test_a_step_that_failed_has_its_own_reason(build: ModuleType) -> None:
    facts = probed(build, {**TRAINED, "last": ("a0", "b0")}, {**EXPORTED, "loaded": (), "exported": ("x",)})
    for step in (build.TRAIN, build.EXPORT):
        status = {**facts.step_status, step: FAILED}
        results = ran_weights(facts.model_copy(update={"step_status": status}), CheckContext())
        assert step not in [one.step for one in results]
