"""Facts of a run: keys of stored documents are texts."""

from tests.support.stories import INFER, a_plan

from tipcflow.domain import Facts, LegKey


def test_the_plan_distinguishes_a_step_from_a_leg_in_stored_keys() -> None:
    plan = a_plan()
    step, leg = next((one.id, one.legs[0].id) for one in plan.steps if one.id == INFER)
    stored = {step: {"a.png": (1.0,)}, f"{step}/{leg}": {"a.png": (0.5,)}}
    facts = Facts(run="r", plan=plan, predictions=stored)
    assert facts.predictions == {LegKey(step): {"a.png": (1.0,)}, LegKey(step, leg): {"a.png": (0.5,)}}
    assert Facts.model_validate_json(facts.model_dump_json()) == facts
