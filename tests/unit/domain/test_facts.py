"""Facts of a run: keys of stored documents are texts."""

from typing import Any

import pytest
from tests.support.stories import INFER, a_plan

from tipcflow.domain import CheckFamily, Facts, LegKey, family_of, is_accuracy
from tipcflow.domain.keys import PredictionKey


def test_the_plan_distinguishes_a_step_from_a_leg_in_stored_keys() -> None:
    plan = a_plan()
    step, leg = next((one.id, one.legs[0].id) for one in plan.steps if one.id == INFER)
    stored: dict[Any, Any] = {step: {"a.png": (1.0,)}, f"{step}/{leg}": {"a.png": (0.5,)}}
    facts, image = Facts(run="r", plan=plan, predictions=stored), PredictionKey("a.png")
    assert facts.predictions == {LegKey(step): {image: (1.0,)}, LegKey(step, leg): {image: (0.5,)}}
    assert Facts.model_validate_json(facts.model_dump_json()) == facts


@pytest.mark.parametrize(
    ("check", "family"),
    [
        ("accuracy.final", CheckFamily.ACCURACY),
        ("speed.baseline", CheckFamily.SPEED),
        ("baseline.pinned", CheckFamily.BASELINE),
        ("loss.finite", None),
        ("accuracy", None),
    ],
)
def test_family_is_the_first_part_of_a_checks_name(check: str, family: CheckFamily | None) -> None:
    assert family_of(check) is family
    assert is_accuracy(check) == (family is CheckFamily.ACCURACY)
