"""Messages of a runner's watch as events."""

from typing import Any

import pytest

from tipcflow.domain.run.job_event import JobEnd, JobGone, JobHang, JobLog, JobState, LegEnd, decode

RECORD = {"run": "r", "step": "train", "node": "a", "reason": "exited", "exit_code": 0}


@pytest.mark.parametrize(
    ("message", "event"),
    [
        ({"event": "state", "state": "running"}, JobState("running")),
        ({"event": "log", "offset": 7, "size": 3, "data": "abc"}, JobLog("", "abc", 10)),
        ({"event": "hang", "message": ""}, JobHang("no progress")),
        ({"event": "hang", "message": "m", "unsure": True, "number": 3}, JobHang("m", unsure=True, number=3)),
        ({"event": "leg", "record": [1]}, LegEnd(None)),
        ({"event": "end"}, JobEnd(None, None, {})),
        ({"event": "lost"}, JobGone("the runner died without an exit record")),
        ({"event": "absent"}, JobGone("the job's folder does not exist any more")),
        ({"event": "sample", "cpu": 1}, None),
        ({"event": "of a newer runner"}, None),
        ({}, None),
    ],
)
def test_messages_are_decoded(message: dict[str, Any], event: Any) -> None:
    assert decode(message) == event


def test_only_files_written_by_the_job_are_artefacts() -> None:
    files = [
        {"path": "old", "size": 1, "fresh": False},
        {"path": "missing", "size": 0, "exists": False},
        {"path": "new", "size": 3, "fresh": True},
    ]
    event = decode({"event": "end", "record": RECORD, "artefacts": files})
    assert isinstance(event, JobEnd)
    assert event.record is not None
    assert event.record.ok
    assert event.artefacts == {"new": 3}


def test_a_log_event_without_its_place_is_an_error() -> None:
    with pytest.raises(KeyError):
        decode({"event": "log", "data": "abc"})
