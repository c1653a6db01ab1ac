"""parity.onednn: on and off give the same predictions, or the reason names why they cannot be compared."""

import math
from types import ModuleType

import pytest

from tipcflow.check import CheckContext
from tipcflow.check.predictions.parity import parity_onednn
from tipcflow.domain import CheckResult, Facts, Status
from tipcflow.domain.quarantine.signature import signature_of

PASS, FAILED, OPEN = Status.PASS, Status.FAILED, Status.INSUFFICIENT_DATA


def judged(facts: Facts) -> CheckResult:
    (result,) = parity_onednn(facts, CheckContext())
    return result


def with_scores(build: ModuleType, **rows: tuple[float, ...] | None) -> Facts:
    """The good run, with other scores on the oneDNN side for the named images (None: not compared)."""
    both = build.predictions()
    mine = {**both[f"{build.INFER}/{build.ON}"], **{f"{name}.png": row for name, row in rows.items()}}
    both[f"{build.INFER}/{build.ON}"] = {name: row for name, row in mine.items() if row is not None}
    return build.facts(predictions=both)


def test_scores_are_equal_within_tolerance(build: ModuleType) -> None:
    result = judged(build.facts())
    assert (result.status, result.leg, result.values["compared_with"]) == (PASS, build.ON, build.OFF)
    assert result.values["max_abs"] == pytest.approx(1e-7)
    assert result.values["classes"] == 3


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ((0.1, 0.7, 0.21), "scores differ by 0.01, allowed 1e-05 + 0.0001 relative (image b.png, against cpu_"),
        ((0.1, 0.2, 0.7), "class 2 against class 1 (image b.png"),
        ((0.1, math.nan, 0.2), "scores are not finite (image b.png"),
        ((0.1, 0.9), "2 scores against 3 (image b.png"),
        (None, "1 images have predictions on one side only, first b.png"),
    ],
)
def test_different_predictions_fail_parity(build: ModuleType, row: tuple[float, ...] | None, words: str) -> None:
    result = judged(with_scores(build, b=row))
    assert result.status is FAILED
    assert result.reason.startswith(words)


def test_the_tolerance_is_the_published_one(build: ModuleType) -> None:
    allowed = 1e-5 + 1e-4 * 0.7
    assert judged(with_scores(build, b=(0.1, 0.7 + 0.99 * allowed, 0.2))).status is PASS
    beyond = judged(with_scores(build, b=(0.1, 0.7 + 1.01 * allowed, 0.2)))
    assert (beyond.status, signature_of(beyond)) == (FAILED, f"other_scores compared_with={build.OFF}")


def test_an_equal_class_is_required_even_within_tolerance(build: ModuleType) -> None:
    both = build.predictions()
    both[f"{build.INFER}/{build.OFF}"]["c.png"] = (0.4, 0.400001, 0.2)
    both[f"{build.INFER}/{build.ON}"]["c.png"] = (0.400001, 0.4, 0.2)
    result = judged(build.facts(predictions=both))
    assert result.reason.startswith("class 0 against class 1 (image c.png")
    assert signature_of(result) == f"other_class compared_with={build.OFF}"


def test_single_predicted_class_leaves_parity_open(build: ModuleType) -> None:
    dead = {f"{name}.png": (0.001,) * 3 for name in "abc"}
    both = {f"{build.INFER}/{leg}": dead for leg in (build.ON, build.OFF)}
    result = judged(build.facts(predictions=both))
    assert (result.status, result.reason) == (
        OPEN,
        "all 3 images have the same class: parity is not meaningful",
    )


def test_failed_side_of_a_pair_is_named(build: ModuleType) -> None:
    statuses = {**build.facts().leg_status, f"{build.INFER}/{build.OFF}": FAILED}
    facts = build.facts(leg_status=statuses, step_reason={f"{build.INFER}/{build.OFF}": "ended with 139"})
    assert (judged(facts).status, judged(facts).reason) == (OPEN, f"{build.OFF} is failed: ended with 139")
    silent = build.facts(predictions={f"{build.INFER}/{build.ON}": {"a.png": (1.0,)}})
    assert (judged(silent).status, judged(silent).reason) == (OPEN, f"{build.OFF} printed no predictions")


def test_the_same_engine_on_both_sides_does_not_prove_parity(build: ModuleType) -> None:
    facts = build.facts(engine={f"{build.INFER}/{leg}": build.engine(True) for leg in (build.ON, build.OFF)})
    assert (judged(facts).status, "both sides ran with oneDNN on" in judged(facts).reason) == (OPEN, True)


def test_only_legs_that_are_equal_otherwise_are_compared(build: ModuleType) -> None:
    on, off = build.legs()
    plan = build.plan()
    steps = tuple(
        step.model_copy(update={"legs": (on, off.model_copy(update={"batch_size": 2}))})
        if step.id == build.INFER
        else step
        for step in plan.steps
    )
    assert parity_onednn(build.facts(plan=plan.model_copy(update={"steps": steps})), CheckContext()) == []


def test_the_ratio_of_vanishing_scores_is_not_shown(build: ModuleType) -> None:
    both = build.predictions()
    both[f"{build.INFER}/{build.OFF}"]["c.png"] = (1e-9, 0.3, 0.7)
    both[f"{build.INFER}/{build.ON}"]["c.png"] = (2e-9, 0.3, 0.7)
    result = judged(build.facts(predictions=both))
    assert result.status is PASS
    assert result.values["max_rel"] < 1e-5


def test_legs_that_cannot_run_are_not_compared(build: ModuleType) -> None:
    def with_reasons(*reasons: str) -> Facts:
        infer = next(step for step in build.plan().steps if step.id == build.INFER)
        legs = tuple(
            leg.model_copy(update={"not_run": reason}) for leg, reason in zip(infer.legs, reasons, strict=True)
        )
        steps = tuple(
            step.model_copy(update={"legs": legs}) if step.id == infer.id else step for step in build.plan().steps
        )
        return build.facts(plan=build.plan(steps=steps))

    count = len(next(step for step in build.plan().steps if step.id == build.INFER).legs)
    assert parity_onednn(with_reasons(*["no GPU"] * count), CheckContext()) == []
    assert len(parity_onednn(with_reasons("no GPU", *[""] * (count - 1)), CheckContext())) == 1
