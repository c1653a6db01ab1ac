"""parity.chain: every leg against the network before its export."""

import math
from types import ModuleType

import pytest

from tipcflow.check import CheckContext, judge, verdict
from tipcflow.check.predictions.parity_chain import parity_chain
from tipcflow.config.policy import Policy, Tolerance
from tipcflow.domain import CheckResult, Facts, LegKey, Status
from tipcflow.domain.keys import PredictionKey

PASS, FAILED, OPEN = Status.PASS, Status.FAILED, Status.INSUFFICIENT_DATA


def judged(facts: Facts) -> list[CheckResult]:
    return parity_chain(facts, CheckContext())


def with_network(build: ModuleType, step: str, **rows: tuple[float, ...]) -> Facts:
    """The good run whose step printed the network's predictions; other values for some images."""
    both = build.predictions()
    both[step] = {**both[f"{build.INFER}/{build.OFF}"], **{f"{name}.png": row for name, row in rows.items()}}
    return build.facts(predictions=both)


@pytest.mark.parametrize("source", ["EXPORT", "EVAL"])
def test_every_leg_is_compared_with_the_network(build: ModuleType, source: str) -> None:
    step = getattr(build, source)
    results = judged(with_network(build, step))
    assert [(one.leg, one.status) for one in results] == [(build.ON, PASS), (build.OFF, PASS)]
    assert results[0].values["compared_with"] == step


def test_an_export_that_changed_the_network_is_a_failure(build: ModuleType) -> None:
    results = judged(with_network(build, build.EXPORT, b=(0.1, 0.5, 0.4)))
    assert [one.status for one in results] == [FAILED, FAILED]
    assert "image b.png, against the network in v/export" in results[0].reason


@pytest.mark.parametrize(("share", "status"), [(0.3, FAILED), (0.34, PASS)])
def test_a_policy_allows_another_class_for_a_share_of_the_images(
    build: ModuleType, share: float, status: Status
) -> None:
    """One of three images has another class."""
    policy = Policy(name="p", chain={"fp32": Tolerance(other_class=share)})
    assert {one.status for one in parity_chain(_with_another_class(build), CheckContext(policy=policy))} == {
        status
    }


def _with_another_class(build: ModuleType) -> Facts:
    scores = build.predictions()[f"{build.INFER}/{build.OFF}"]["b.png"]
    return with_network(build, build.EXPORT, b=(*scores[1:], scores[0]))


def test_a_network_that_predicts_one_class_proves_nothing(build: ModuleType) -> None:
    dead = {f"{name}.png": (0.9, 0.05, 0.05) for name in "abc"}
    printed = dict.fromkeys((build.EXPORT, f"{build.INFER}/{build.ON}", f"{build.INFER}/{build.OFF}"), dead)
    results = judged(build.facts(predictions=printed))
    assert {one.status for one in results} == {OPEN}
    assert results[0].reason == "all 3 images have the same class: parity is not meaningful"


CLASS_0, CLASS_1 = (0.9, 0.1), (0.1, 0.9)
NAN = (math.nan, math.nan)


@pytest.mark.parametrize(
    ("network", "answer", "images", "legs", "words"),
    [
        (CLASS_0, NAN, 1, 1, "scores are not finite (image 0.png, against the network in v/export)"),
        (CLASS_0, CLASS_1, 1, 2, "class 1 against class 0 (image 0.png, against the network in v/export)"),
        (CLASS_0, CLASS_1, 3, 2, "class 1 against class 0 (image 0.png, against the network in v/export)"),
    ],
)
def test_a_difference_counts_even_if_the_network_predicts_one_class(
    build: ModuleType, network: tuple[float, ...], answer: tuple[float, ...], images: int, legs: int, words: str
) -> None:
    """That agreement on one class proves nothing does not excuse legs that disagree with the network."""
    facts = _of_legs(build, legs)
    pictures = [PredictionKey(f"{number}.png") for number in range(images)]
    printed = {LegKey(build.INFER, leg.id): dict.fromkeys(pictures, answer) for leg in build.legs()[:legs]}
    wrong = facts.model_copy(
        update={"predictions": {LegKey(build.EXPORT): dict.fromkeys(pictures, network), **printed}}
    )
    results = judge(wrong, CheckContext())
    assert [one.reason for one in results if one.check == "parity.chain"] == [words] * legs
    assert verdict(wrong, results)[0] is FAILED


def _of_legs(build: ModuleType, count: int) -> Facts:
    """The good run with the first legs of its inference only; a single one has no twin without oneDNN."""
    kept = build.legs()[:count]
    steps = tuple(
        step.model_copy(update={"legs": kept}) if step.id == build.INFER else step for step in build.steps()
    )
    return build.facts(plan=build.plan(steps=steps))


@pytest.mark.parametrize("where", ["EXPORT", "INFER"])
def test_non_finite_score_fails_the_run(build: ModuleType, where: str) -> None:
    """Also where nothing could be compared with it."""
    key = LegKey(build.EXPORT) if where == "EXPORT" else LegKey(build.INFER, build.ON)
    scores = {PredictionKey("a.png"): (0.5, 0.5), PredictionKey("b.png"): (0.4, math.inf)}
    facts = _of_legs(build, 1).model_copy(update={"predictions": {key: scores}})
    results = judge(facts, CheckContext())
    (result,) = [one for one in results if one.status is FAILED]
    words = "prediction of image b.png is not finite; 1 of 2 images have scores that are not finite"
    assert (result.check, result.step, result.leg, result.reason) == ("loss.finite", key.step, key.leg, words)
    assert verdict(facts, results)[0] is FAILED


def test_different_images_leave_parity_open(build: ModuleType) -> None:
    results = judged(with_network(build, build.EXPORT, d=(0.1, 0.8, 0.1)))
    assert {one.status for one in results} == {OPEN}
    assert results[0].reason.startswith("not the same images as in v/export: 1 images")


def test_legs_with_different_images_are_not_comparable(build: ModuleType) -> None:
    facts = with_network(build, build.EXPORT)
    scores = facts.predictions[LegKey(build.INFER, build.ON)]
    other = {PredictionKey(f"other_{name}"): row for name, row in scores.items()}
    facts = facts.model_copy(update={"predictions": {**facts.predictions, LegKey(build.INFER, build.ON): other}})
    assert {one.leg: one.status for one in judged(facts)} == {build.ON: FAILED, build.OFF: PASS}


def test_a_network_that_printed_nothing_is_reported_once(build: ModuleType) -> None:
    (result,) = judged(build.facts())
    assert (result.status, result.leg) == (OPEN, "")
    assert result.reason == "neither the export nor the evaluation printed predictions of the network itself"


def test_evaluation_export_and_legs_are_one_chain(build: ModuleType) -> None:
    facts = with_network(build, build.EXPORT)
    scores = facts.predictions[LegKey(build.EXPORT)]
    same = facts.model_copy(update={"predictions": {**facts.predictions, LegKey(build.EVAL): scores}})
    export, *legs = judged(same)
    assert (export.step, export.leg, export.status) == (build.EXPORT, "", PASS)
    assert (export.values["compared_with"], len(legs)) == (build.EVAL, 2)
    other = {**scores, PredictionKey("b.png"): (0.7, 0.1, 0.2)}
    export, *legs = judged(
        facts.model_copy(update={"predictions": {**facts.predictions, LegKey(build.EVAL): other}})
    )
    assert (export.status, [leg.status for leg in legs]) == (FAILED, [PASS, PASS])
    assert "image b.png, against the network in v/eval" in export.reason


def test_leg_may_have_a_separate_tolerance(build: ModuleType) -> None:
    facts = with_network(build, build.EXPORT, b=(0.1, 0.702, 0.198))
    assert [one.status for one in judged(facts)] == [FAILED, FAILED]
    wide = Policy(name="p", chain={"cpu_onednn*": Tolerance(rtol=0, atol=0.01), "fp32": Tolerance()})
    on, off = parity_chain(facts, CheckContext(policy=wide))
    assert (on.leg, on.status, on.values["atol"]) == (build.ON, PASS, 0.01)
    assert (off.leg, off.status) == (build.OFF, FAILED)


def test_every_repeat_is_compared_with_its_own_network(build: ModuleType) -> None:
    facts = with_network(build, build.EXPORT)
    steps = tuple(
        again
        for step in facts.plan.steps
        for again in (
            step,
            step.model_copy(update={"repeat": 2, "id": f"again/{step.id}"}),
        )
    )
    other = {name: tuple(reversed(row)) for name, row in facts.predictions[LegKey(build.EXPORT)].items()}
    second = {
        LegKey(f"again/{build.EXPORT}"): other,
        **{LegKey(f"again/{build.INFER}", leg): other for leg in (build.ON, build.OFF)},
    }
    facts = facts.model_copy(
        update={
            "plan": facts.plan.model_copy(update={"steps": steps}),
            "predictions": {**facts.predictions, **second},
            "step_status": {**facts.step_status, f"again/{build.EXPORT}": PASS},
            "leg_status": facts.leg_status
            | {LegKey(f"again/{build.INFER}", leg): PASS for leg in (build.ON, build.OFF)},
        }
    )
    assert [one.status for one in judged(facts)] == [PASS] * 4
