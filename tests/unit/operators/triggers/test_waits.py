"""The reason of a wait is written to the log of the task and to the events of the run."""

import asyncio
import logging
import os
import time
from pathlib import Path

import pytest

from tipcflow.execute.events import events_path, latest_events
from tipcflow.execute.sweeps.old_events import EVENTS_S
from tipcflow_operators.triggers.waits import report_wait


def test_a_triggerer_removes_old_event_files_of_its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    old = events_path(tmp_path, "old")
    old.parent.mkdir(parents=True)
    old.write_text("{}\n")
    os.utime(old, (time.time() - EVENTS_S - 60,) * 2)
    asyncio.run(report_wait(logging.getLogger(__name__), "mine", "waiting for node-1"))
    assert [event.text for event in latest_events(tmp_path, "mine", 4096)] == ["waiting for node-1"]
    until = time.monotonic() + 30
    while old.exists():
        assert time.monotonic() < until, "the file was not removed"
        time.sleep(0.01)
