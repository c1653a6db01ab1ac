"""Legs that a request drops stay in the plan, so that the verdict names them."""

import pytest
from tests.support.stories import a_plan

from tipcflow.domain import ConfigError, Plan
from tipcflow.execute.resolve.drop import DROPPED, without_legs


def not_run(plan: Plan) -> dict[str, str]:
    return {f"{step.id}/{leg.id}": leg.not_run for step in plan.steps for leg in step.legs if leg.not_run}


def first_leg(plan: Plan) -> str:
    return next(f"{step.id}/{leg.id}" for step in plan.steps for leg in step.legs)


def test_a_named_leg_is_not_run() -> None:
    plan = a_plan()
    assert not_run(plan) == {}
    name = first_leg(plan)
    assert not_run(without_legs(plan, [name])) == {name: DROPPED}
    assert without_legs(plan, []) is plan


def test_globs_match_and_an_older_reason_is_kept() -> None:
    plan = a_plan()
    name = first_leg(plan)
    steps = [
        step.model_copy(update={"legs": tuple(leg.model_copy(update={"not_run": "no GPU"}) for leg in step.legs)})
        for step in plan.steps
    ]
    gone = plan.model_copy(update={"steps": tuple(steps)})
    assert not_run(without_legs(gone, ["*"]))[name] == "no GPU"
    assert set(not_run(without_legs(plan, ["*"])).values()) == {DROPPED}


def test_a_name_without_a_leg_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        without_legs(a_plan(), ["*", "infer/nothing"])
    result = str(caught.value)
    assert "drop" in result
    assert "infer/nothing" in result
    assert first_leg(a_plan()) in result
