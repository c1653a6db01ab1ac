"""golden.results: predictions against stored ones; missing goldens are reported."""

from types import ModuleType
from typing import Any

import pytest

from tipcflow.check import CheckContext
from tipcflow.check.predictions.golden import golden_results
from tipcflow.config.goldens import GoldenPredictions, Goldens
from tipcflow.config.policy import GoldenRule, Policy, Tolerance
from tipcflow.domain import CheckResult, GoldenKey, Status
from tipcflow.domain.keys import PredictionKey

PASS, FAILED, OPEN = Status.PASS, Status.FAILED, Status.INSUFFICIENT_DATA


def goldens(build: ModuleType, **changes: Any) -> Goldens:
    scores = build.predictions()[f"{build.INFER}/{build.OFF}"]
    answers = {GoldenKey(build.INFER, "fp32"): GoldenPredictions(leg=build.OFF, scores=scores)}
    values = {"chain": "c", "mode": "m", "seed": build.run().seed, "run": "r0", "who": "mia", "because": "looked"}
    return Goldens(**{**values, "at": "2026-11-21T00:00:00+00:00", "answers": answers, **changes})


def judged(build: ModuleType, kept: Goldens | None, facts: Any = None, **rule: Any) -> list[CheckResult]:
    policy = Policy(name="p", golden=GoldenRule(**rule))
    context = CheckContext(goldens=kept, policy=policy, run=build.run())
    return golden_results(facts or build.facts(), context)


def test_every_leg_is_compared(build: ModuleType) -> None:
    results = judged(build, goldens(build))
    assert [(one.leg, one.status) for one in results] == [(build.ON, PASS), (build.OFF, PASS)]
    assert results[0].values["golden"] == "r0"
    assert results[0].values["max_abs"] == pytest.approx(1e-7)


def test_another_prediction_fails(build: ModuleType) -> None:
    both = build.predictions()
    both[f"{build.INFER}/{build.ON}"]["b.png"] = (0.1, 0.7 + 3e-3, 0.2)
    facts = build.facts(predictions=both)
    on, off = judged(build, goldens(build), facts)
    assert (on.status, off.status) == (FAILED, PASS)
    assert on.reason.startswith("scores differ by 0.003, allowed 0.001 + 0.001 relative (image b.png")
    wide = judged(build, goldens(build), facts, budgets={"fp32": Tolerance(rtol=0, atol=4e-3)})
    assert [one.status for one in wide] == [PASS, PASS]


def test_other_images_fail(build: ModuleType) -> None:
    both = build.predictions()
    both[f"{build.INFER}/{build.ON}"].pop("b.png")
    on, _ = judged(build, goldens(build), build.facts(predictions=both))
    assert (on.status, on.reason) == (
        FAILED,
        "other images than the golden's: 1 images have predictions on one side only, first b.png",
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (None, "no goldens are stored for this chain in lite_train_lite_infer: review the predictions, then run"),
        ({"seed": 5}, "the goldens come from a training with seed 5, this run has 2026"),
        ({"compat": "bash"}, "the goldens come from a `bash` run, this is `spec`"),
        (
            {"answers": {"x|int8": GoldenPredictions(leg="x", scores={"a": (1.0,)})}},
            "no golden is stored for fp32: review",
        ),
    ],
)
def test_missing_parts_are_reported(build: ModuleType, changes: dict[str, Any] | None, words: str) -> None:
    (result,) = judged(build, None if changes is None else goldens(build, **changes))
    assert (result.status, result.step) == (OPEN, build.INFER)
    assert result.reason.startswith(words)


def test_gating_is_the_policys_choice(build: ModuleType) -> None:
    assert not any(one.gating for one in judged(build, goldens(build), gating=False))


def test_a_leg_without_predictions_does_not_escape_its_golden(build: ModuleType) -> None:
    """The leg printed its report, so it ran; its predictions are missing."""
    both = build.predictions()
    both.pop(f"{build.INFER}/{build.ON}")
    on, off = judged(build, goldens(build), build.facts(predictions=both))
    assert (on.leg, on.status, off.status) == (build.ON, FAILED, PASS)
    assert on.reason == f"the leg printed no predictions; a golden of {build.OFF} is stored"
    (nothing,) = judged(build, None, build.facts(predictions={}))
    assert (nothing.status, nothing.step) == (OPEN, build.INFER)
    assert nothing.reason == "legs printed no predictions; no golden to store or compare"


@pytest.mark.parametrize(
    ("precision", "status"), [("fp32", FAILED), ("fp16", PASS), ("bf16", PASS), ("int8", PASS)]
)
def test_every_precision_has_its_own_tolerance(build: ModuleType, precision: str, status: Status) -> None:
    scores = build.predictions()[f"{build.INFER}/{build.OFF}"]
    kept = goldens(build, answers={GoldenKey(build.INFER, precision): GoldenPredictions(leg="x", scores=scores)})
    off = {name: tuple(one * 1.004 for one in row) for name, row in scores.items()}
    infer = next(step for step in build.plan().steps if step.id == build.INFER)
    legs = tuple(leg.model_copy(update={"precision": precision}) for leg in infer.legs)
    steps = tuple(
        step.model_copy(update={"legs": legs}) if step.id == infer.id else step for step in build.plan().steps
    )
    predictions = {f"{infer.id}/{leg.id}": off for leg in legs}
    facts = build.facts(plan=build.plan(steps=steps), predictions=predictions)
    assert {one.status for one in judged(build, kept, facts)} == {status}


def against_file(
    build: ModuleType, printed: dict[str, tuple[float, ...]], **stored: tuple[float, ...]
) -> CheckResult:
    """The result of a leg that printed boxes, against a file of results for `a` and `b`."""
    kept = GoldenPredictions(
        file="python_x_results_fp32.txt",
        scores={PredictionKey(f"{name}.jpg", 1): row for name, row in stored.items()},
    )
    leg = f"{build.INFER}/{build.OFF}"
    facts = build.facts(predictions={leg: {PredictionKey(name, 1): row for name, row in printed.items()}})
    results = judged(build, goldens(build, answers={GoldenKey(build.INFER, "fp32"): kept}), facts)
    return next(result for result in results if result.leg == build.OFF)


def test_only_images_of_a_results_file_are_compared(build: ModuleType) -> None:
    printed = {"./x/a.jpg": (39.0, 88.0), "./x/c.jpg": (1.0, 2.0)}
    result = against_file(build, printed, a=(39.0, 88.05), b=())
    assert (result.status, result.reason.split(":")[0]) == (PASS, "1 results")
    assert result.values["golden_leg"] == "python_x_results_fp32.txt"


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (
            {"a.jpg": (39.0, 98.0)},
            "values differ by 10, allowed 0.001 + 0.001 relative (image a.jpg: result 1, against",
        ),
        ({"a.jpg": (39.0,)}, "1 values against 2 (image a.jpg: result 1"),
        ({"a.jpg": (39.0, 88.0), "b.jpg": (1.0, 2.0)}, "2 values against 0 (image b.jpg: result 1"),
        ({"c.jpg": (39.0, 88.0)}, "other images than the golden's: 1 images have predictions on one side only"),
        ({}, "the leg printed no predictions; a golden of python_x_results_fp32.txt is stored"),
    ],
)
def test_a_result_that_differs_from_its_file_fails(
    build: ModuleType, printed: dict[str, tuple[float, ...]], reason: str
) -> None:
    result = against_file(build, printed, a=(39.0, 88.0), b=())
    assert (result.status, result.reason[: len(reason)]) == (FAILED, reason)
