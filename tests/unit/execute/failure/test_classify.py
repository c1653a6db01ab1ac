"""Exit record and log diagnosis -> failure class: whom the out-of-memory killer may have ended."""

from typing import Any

import pytest
from tests.support.stories import a_record, a_run

from tipcflow.domain import EndReason
from tipcflow.domain.run.failure import FailureClass
from tipcflow.execute.failure.classify import class_of
from tipcflow.execute.failure.diagnosis import diagnose_logs

PIP = "ERROR: Could not find a version that satisfies the requirement toyframe==7.7 (from versions: 2.1)\n"
OOM, CODE = FailureClass.OOM_HOST, FailureClass.CODE_ERROR


@pytest.mark.parametrize(
    ("fields", "log", "expected"),
    [
        # The kernel names the job's process, whatever is in the log.
        ({"exit_code": 1, "oom_named": True}, PIP, OOM),
        # Another container's process was killed while pip reported its own error.
        ({"exit_code": 1}, PIP, CODE),
        ({"exit_code": 1}, "Traceback (most recent call last):\nValueError: no such key\n", CODE),
        ({"exit_code": None, "reason": EndReason.SIGNALED, "signal": 9}, "epoch: 1\n", OOM),
        ({"exit_code": 137}, "epoch: 1\n", OOM),
        ({"exit_code": 1}, "train.sh: line 3:  4242 Killed    python train.py\n", OOM),
        ({"exit_code": 1}, "subprocess.CalledProcessError: Command died with <Signals.SIGKILL: 9>.\n", OOM),
        ({"exit_code": 250}, "", OOM),
    ],
)
def test_kill_that_may_be_of_another_container(fields: dict[str, Any], log: str, expected: FailureClass) -> None:
    known = {"reason": EndReason.EXITED, "oom": True, "oom_named": False}
    record = a_record(a_run().id, **{**known, **fields})
    assert class_of(record, diagnose_logs(log, {})) is expected


def test_the_kill_is_the_cause_of_a_lost_peer() -> None:
    """The lost peer is the sign of the kill."""
    lost = "RuntimeError: Connection closed by peer [10.0.0.1]:29500\n"
    record = a_record(a_run().id, reason=EndReason.EXITED, exit_code=1, oom=True, oom_named=False)
    assert class_of(record, diagnose_logs(lost, {})) is OOM


def test_record_of_an_older_runner_is_believed() -> None:
    record = a_record(a_run().id, reason=EndReason.EXITED, exit_code=1, oom=True)
    assert class_of(record, diagnose_logs(PIP, {})) is OOM
