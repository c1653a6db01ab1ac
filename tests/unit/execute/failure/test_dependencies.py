"""Which steps are not started, and why."""

from typing import Any

import pytest
from tests.support.stories import INFER, TRAIN, a_plan

from tipcflow.domain import Status
from tipcflow.execute.failure.dependencies import refusal

PLAN = a_plan()


@pytest.mark.parametrize(
    ("step", "statuses", "stopped", "expected"),
    [
        (TRAIN, {}, False, None),
        (TRAIN, {}, True, Status.CANCELLED),
        (INFER, {TRAIN: Status.PASS}, False, None),
        (INFER, {TRAIN: Status.FAILED}, False, Status.BLOCKED),
        (INFER, {}, False, Status.BLOCKED),
        (INFER, {TRAIN: Status.CANCELLED}, True, Status.CANCELLED),
        (INFER, {}, True, Status.CANCELLED),
        (INFER, {TRAIN: Status.FAILED}, True, Status.BLOCKED),
    ],
)
def test_a_step_needs_its_steps_and_a_run_that_no_user_stopped(
    step: str, statuses: dict[str, Status], stopped: bool, expected: Any
) -> None:
    refused = refusal(PLAN.step(step), statuses, stopped=stopped)
    assert (refused and refused[0]) == expected


def test_step_left_out_by_the_mode_is_not_run_in_stopped_runs() -> None:
    step = PLAN.step(TRAIN).model_copy(update={"not_run": "mode m has no training"})
    for stopped in (True, False):
        assert refusal(step, {}, stopped=stopped) == (Status.NOT_RUN, "mode m has no training")
