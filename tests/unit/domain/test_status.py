"""The status table: severity, exit codes, and that no run passes without work done."""

import pytest

from tipcflow.domain import Status, exit_code, run_status


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["pass", "not_run", "insufficient_data"], "pass"),
        (["pass", "improvement"], "improvement"),
        (["failed", "blocked", "blocked"], "failed"),
        (["infra_failure", "failed"], "failed"),
        (["infra_failure", "regression"], "regression"),
        (["infra_failure", "unconfirmed"], "unconfirmed"),
        (["cancelled", "unconfirmed"], "cancelled"),
        (["cancelled", "unconfirmed", "infra_failure"], "infra_failure"),
        (["cancelled", "unconfirmed", "regression"], "regression"),
        (["regression", "unconfirmed", "insufficient_data"], "regression"),
        (["cancelled", "infra_failure"], "infra_failure"),
        (["cancelled", "blocked"], "cancelled"),
    ],
)
def test_worst_status_wins(statuses: list[str], expected: str) -> None:
    found = run_status([Status(word) for word in statuses], executed_steps=3, trained=True, trains=True)
    assert found is Status(expected)


@pytest.mark.parametrize(
    ("executed", "trained", "trains", "expected"),
    [
        (0, False, True, "failed"),
        (0, False, False, "failed"),
        (4, False, True, "failed"),
        (4, False, False, "pass"),
        (4, True, True, "pass"),
    ],
)
def test_a_run_that_did_nothing_never_passes(executed: int, trained: bool, trains: bool, expected: str) -> None:
    found = run_status([Status.PASS], executed_steps=executed, trained=trained, trains=trains)
    assert found is Status(expected)


def test_infra_failure_before_training_keeps_its_name() -> None:
    found = run_status([Status.INFRA_FAILURE], executed_steps=0, trained=False, trains=True)
    assert found is Status.INFRA_FAILURE


def test_every_status_has_an_exit_code() -> None:
    assert {word.value: exit_code(word) for word in Status if word is not Status.BLOCKED} == {
        "pass": 0,
        "improvement": 0,
        "insufficient_data": 0,
        "not_run": 0,
        "cancelled": 3,
        "infra_failure": 5,
        "unconfirmed": 4,
        "regression": 1,
        "failed": 1,
        "config_error": 2,
    }
