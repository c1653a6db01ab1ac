"""Facts of a run: keys of stored documents are texts."""

from typing import Any

from tests.support.stories import INFER, a_plan

from tipcflow.domain import Facts, LegKey
from tipcflow.domain.keys import PredictionKey


def test_the_plan_distinguishes_a_step_from_a_leg_in_stored_keys() -> None:
    plan = a_plan()
    step, leg = next((one.id, one.legs[0].id) for one in plan.steps if one.id == INFER)
    stored: dict[Any, Any] = {step: {"a.png": (1.0,)}, f"{step}/{leg}": {"a.png": (0.5,)}}
    facts, image = Facts(run="r", plan=plan, predictions=stored), PredictionKey("a.png")
    assert facts.predictions == {LegKey(step): {image: (1.0,)}, LegKey(step, leg): {image: (0.5,)}}
    assert Facts.model_validate_json(facts.model_dump_json()) == facts
