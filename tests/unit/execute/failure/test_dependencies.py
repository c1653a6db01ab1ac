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


EXPORT, LAST = "norm_train_cpu/export", "norm_train_cpu/infer_gpu"
# Training, export, inference; and one more inference that needs both the export and the training.
CHAIN = (
    PLAN.step(TRAIN),
    PLAN.step(TRAIN).model_copy(update={"id": EXPORT, "after": (TRAIN,)}),
    PLAN.step(INFER).model_copy(update={"after": (EXPORT,)}),
    PLAN.step(INFER).model_copy(update={"id": LAST, "after": (EXPORT, TRAIN)}),
)


@pytest.mark.parametrize(
    ("statuses", "reason"),
    [
        ({TRAIN: Status.FAILED, EXPORT: Status.BLOCKED}, f"{TRAIN} failed"),
        ({TRAIN: Status.FAILED}, f"{TRAIN} failed"),
        ({TRAIN: Status.PASS, EXPORT: Status.FAILED}, f"{EXPORT} failed"),
        ({TRAIN: Status.PASS, EXPORT: Status.BLOCKED}, f"{EXPORT} did not run"),
        ({TRAIN: Status.INFRA_FAILURE, EXPORT: Status.BLOCKED}, f"{TRAIN} had an infra_failure"),
        ({TRAIN: Status.NOT_RUN, EXPORT: Status.BLOCKED}, f"{TRAIN} was not run"),
        ({TRAIN: Status.FAILED, EXPORT: Status.CANCELLED}, f"{EXPORT} was cancelled"),
    ],
)
def test_reason_names_the_step_that_failed_first(statuses: dict[str, Status], reason: str) -> None:
    refused = refusal(CHAIN[2], statuses, CHAIN, stopped=False)
    assert refused == (Status.BLOCKED, f"not started: {reason}")


def test_reason_names_a_step_once() -> None:
    refused = refusal(CHAIN[3], {TRAIN: Status.FAILED, EXPORT: Status.BLOCKED}, CHAIN, stopped=False)
    assert refused == (Status.BLOCKED, f"not started: {TRAIN} failed")
