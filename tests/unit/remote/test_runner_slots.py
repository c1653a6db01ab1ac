"""What a slot's last job has left is gone before the next one may run."""

import getpass
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tipcflow.domain import EndReason, ExitRecord, Status
from tipcflow.domain.failure import FailureClass
from tipcflow.execute.classify import class_of
from tipcflow.execute.outcome import status_of
from tipcflow.execute.telling import Telling
from tipcflow.remote.runner import slots

pytestmark = pytest.mark.process


@pytest.fixture
def survivor(bench) -> Iterator[subprocess.Popen[bytes]]:
    """A process of an earlier job, of which nobody is the runner any more; the slot knows that job."""
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
def test_what_sigkill_does_not_end_keeps_the_slot(bench, survivor, monkeypatch, wait):
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


def test_the_run_says_which_node_and_processes() -> None:
    text = "slot 0 of a is still used by r1/first/1: SIGKILL has not ended pid 7"
    now = {"run": "r2", "step": "train", "attempt": 1, "node": "a", "started_at": 1.0, "ended_at": 1.0}
    record = ExitRecord(reason=EndReason.REFUSED, message=text, **now)
    assert status_of(record) == (Status.INFRA_FAILURE, f"{text} on node a")
    assert class_of(record, Telling()) is FailureClass.NODE_UNREADY
