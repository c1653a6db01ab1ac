"""Payloads of triggers: Airflow stores them, so a task reads those that an earlier version fired."""

from typing import Any

import pytest

from tipcflow.remote.stillness import Stalled
from tipcflow_operators.pull_request.trigger import PullRequestPayload
from tipcflow_operators.triggers.dag_run import DagRunPayload
from tipcflow_operators.triggers.job import JobPayload
from tipcflow_operators.triggers.lease import LeasePayload
from tipcflow_operators.weekly.turn import TurnPayload

# As fired before the payloads had types.
JOB = {
    "step": "train",
    "resume": {"": 17},
    "attempt": 3,
    "stood": {"up": 5.0, "still_s": 8.0},
    "hung": "no progress",
    "hang_number": 2,
}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (JOB, JobPayload("train", {"": 17}, 3, Stalled(5.0, 8.0), "no progress", 2)),
        ({**JOB, "stood": None}, JobPayload("train", {"": 17}, 3, None, "no progress", 2)),
        ({"step": "train", "resume": {"": 17}}, JobPayload("train", {"": 17})),
        ({"step": "infer", "resume": None}, JobPayload("infer")),
        ({**JOB, "mood": "good"}, JobPayload("train", {"": 17}, 3, Stalled(5.0, 8.0), "no progress", 2)),
    ],
    ids=["job", "job that responds", "version without an attempt", "step", "later version"],
)
def test_stored_payload_of_a_step_is_read(event: dict[str, Any], expected: JobPayload) -> None:
    assert JobPayload.of(event) == expected


def test_payload_of_a_job_keeps_its_stored_fields() -> None:
    assert JobPayload.of(JOB).fired().payload == JOB
    assert JobPayload.of({**JOB, "stood": None}).fired().payload == {**JOB, "stood": None}


@pytest.mark.parametrize(
    ("kind", "event"),
    [
        (LeasePayload, {"since": 5.0}),
        (DagRunPayload, {"run_id": "r", "state": "success"}),
        (DagRunPayload, {"run_id": "r", "state": None}),
        (TurnPayload, {"late": True}),
        (PullRequestPayload, {"problem": "no configuration"}),
    ],
)
def test_stored_payload_is_read_and_written_unchanged(kind: Any, event: dict[str, Any]) -> None:
    assert kind.of({**event, "mood": "good"})._asdict() == event


def test_dag_run_is_late_at_the_deadline_only() -> None:
    assert DagRunPayload.of({"run_id": "r", "state": "late"}).is_late
    assert not DagRunPayload.of({"run_id": "r", "state": None}).is_late
