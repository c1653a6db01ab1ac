"""Exit records become the right status word and a reason that names the node."""

import pytest

from tipcflow.domain import EndReason, ExitRecord, OutputFile, Status
from tipcflow.execute.outcome import legs_outcome, status_of


def record(**values: object) -> ExitRecord:
    defaults: dict[str, object] = {"run": "r", "step": "v/train", "node": "b", "reason": EndReason.EXITED}
    return ExitRecord.model_validate({**defaults, **values})


@pytest.mark.parametrize(
    ("values", "tail", "status", "words"),
    [
        ({"exit_code": 0}, "", Status.PASS, ""),
        ({"exit_code": 0}, "the word failed stands here\nTraceback", Status.PASS, ""),
        ({"exit_code": 7}, "", Status.FAILED, "exit code 7 on node b"),
        ({"reason": "signaled", "signal": 9}, "", Status.FAILED, "signal 9 on node b"),
        ({"reason": "signaled", "signal": 9, "oom": True}, "", Status.FAILED, "out of memory"),
        ({"reason": "deadline", "message": "ran longer than 5 s"}, "", Status.FAILED, "longer than 5 s on node b"),
        ({"reason": "refused", "message": "slot 0 is held by x"}, "", Status.INFRA_FAILURE, "slot 0 is held"),
        ({"reason": "lease_expired"}, "", Status.INFRA_FAILURE, "lease expired on node b"),
        ({"reason": "stopped", "message": "cancelled"}, "", Status.CANCELLED, "cancelled"),
        ({"exit_code": 1}, "OSError: [Errno 28] No space left on device", Status.INFRA_FAILURE, "disk is full"),
        (
            {"exit_code": 1},
            "ModuleNotFoundError: No module named 'paddle'",
            Status.INFRA_FAILURE,
            "lacks a package on node b",
        ),
    ],
)
def test_status_of(values: dict[str, object], tail: str, status: Status, words: str) -> None:
    found, reason = status_of(record(**values), tail)
    assert found is status
    assert words in reason


def test_exit_0_without_the_expected_file_is_failed() -> None:
    outputs = (OutputFile(path="out/inference.pdiparams", exists=False),)
    found, reason = status_of(record(exit_code=0, outputs=outputs))
    assert found is Status.FAILED
    assert reason == "exited with 0 but did not write out/inference.pdiparams on node b"


def test_exit_0_with_an_old_file_is_failed() -> None:
    outputs = (OutputFile(path="out/latest.pdparams", exists=True, fresh=False),)
    found, reason = status_of(record(exit_code=0, outputs=outputs))
    assert found is Status.FAILED
    assert "left an older out/latest.pdparams as it was" in reason


def test_worst_leg_names_the_step() -> None:
    legs = [(Status.PASS, ""), (Status.FAILED, "exit code 3 on node a"), (Status.NOT_RUN, "no GPU")]
    assert legs_outcome(legs, (Status.PASS, "")) == (
        Status.FAILED,
        "1 of 2 legs failed: exit code 3 on node a",
    )


def test_a_step_of_which_no_leg_can_run_is_not_run() -> None:
    assert legs_outcome([(Status.NOT_RUN, "no GPU")], (Status.PASS, "")) == (Status.NOT_RUN, "no GPU")


def test_a_lost_node_outweighs_the_legs_it_took_along() -> None:
    legs = [(Status.PASS, ""), (Status.BLOCKED, "not started")]
    step = (Status.INFRA_FAILURE, "node a was lost")
    assert legs_outcome(legs, step) == step
