"""What a slot's last job has left is gone before the next one may run."""

import getpass
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tipcflow.domain import EndReason, ExitRecord, Status
from tipcflow.domain.run.failure import FailureClass
from tipcflow.execute.failure.classify import class_of
from tipcflow.execute.failure.diagnosis import LogDiagnosis
from tipcflow.execute.failure.outcome import status_of
from tipcflow.remote.runner import slots

pytestmark = pytest.mark.process


@pytest.fixture
def survivor(bench) -> Iterator[subprocess.Popen[bytes]]:
    """A process of an earlier job whose runner is gone; the slot knows that job."""
    marks = {"TIPCFLOW_WORKSPACE": str(bench.workspace), "TIPCFLOW_JOB": "r1/first/1", "TIPCFLOW_NODE": "a"}
    child = subprocess.Popen(["sleep", "303"], env={**os.environ, **marks})
    folder = bench.workspace / "slots"
    folder.mkdir()
    (folder / "0.lock").write_text(json.dumps({"fence": 1, "job": "r1/first/1"}))
    yield child
    child.kill()
    child.wait()


def slot_of(bench) -> dict[str, object]:
    """What the slot remembers."""
    return json.loads(Path(bench.workspace, "slots", "0.lock").read_text())


@pytest.mark.parametrize("bench", ["ours"], indirect=True)
def test_process_that_survives_sigkill_keeps_the_slot(bench, survivor, monkeypatch, wait):
    """As a process that waits in the kernel for a disk that is gone: here signals are lost on their way."""
    sent = []
    monkeypatch.setattr("tipcflow.remote.runner.processes.os.kill", lambda *words: sent.append(words))
    monkeypatch.setattr(slots, "GIVE_UP_S", 0.1)
    spec = json.loads((bench.job("true", step="second", slots=(0,), kill_after_s=0.1) / "job.json").read_text())
    for _ in range(2):  # the next one looks again: the slot was not given away
        with pytest.raises(slots.Refused) as caught:
            slots.take_slot(spec, 0)
        assert str(caught.value) == (
            "slot 0 of a is still used by r1/first/1: "
            f"SIGKILL has not ended pid {survivor.pid} (sleep 303, user {getpass.getuser()})"
        )
    assert (survivor.pid, signal.SIGKILL) in sent
    assert slot_of(bench)["job"] == "r1/first/1"
    monkeypatch.undo()
    assert bench.end_of("true", step="third", slots=(0,)).ok
    assert survivor.wait(10) == -signal.SIGTERM
    assert slot_of(bench)["job"] == "r1/third/1"


def test_the_run_names_the_node_and_processes() -> None:
    text = "slot 0 of a is still used by r1/first/1: SIGKILL has not ended pid 7"
    now = {"run": "r2", "step": "train", "attempt": 1, "node": "a", "started_at": 1.0, "ended_at": 1.0}
    record = ExitRecord(reason=EndReason.REFUSED, message=text, **now)
    assert status_of(record) == (Status.INFRA_FAILURE, f"{text} on node a")
    assert class_of(record, LogDiagnosis()) is FailureClass.NODE_UNREADY


def test_a_job_whose_slot_another_run_has_claimed_since_is_refused(bench):
    claims = bench.workspace / "claims"
    claims.mkdir()
    claim = {"run": "r2", "owner": "ci", "slots": [1], "until": time.time() + 600}
    (claims / "r2.json").write_text(json.dumps(claim))
    (claims / "broken.json").write_text("[1]")
    late = bench.job("touch ran", step="late", slots=(0, 1), fence=9)
    message = bench.call("start", late)["record"]["message"]
    assert message == "slot 1 of a is claimed by run r2 (ci), which got a lease on it later"
    assert bench.end_of("true", step="other", slots=(0,), fence=9).ok
    (claims / "r2.json").write_text(json.dumps({**claim, "until": time.time() - 1}))
    assert bench.end_of("true", step="again", slots=(0, 1), fence=9).ok
    (claims / "r2.json").write_text(json.dumps({**claim, "run": "r1"}))
    assert bench.end_of("true", step="own", slots=(0, 1), fence=9).ok
    assert not (bench.root / "ran").exists()


def test_a_number_that_no_controller_writes_does_not_close_a_slot(bench):
    assert bench.end_of("true", step="one", slots=(0,), fence=7).ok
    lock = bench.workspace / "slots" / "0.lock"
    lock.write_text(json.dumps({"fence": 2**60, "job": "r1/one/1"}).ljust(4096))
    assert bench.end_of("true", step="two", slots=(0,), fence=8).ok
    assert json.loads(lock.read_text())["fence"] == 8
