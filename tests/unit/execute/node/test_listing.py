"""The listing of a node's runner: which jobs and runs it has."""

from typing import Any

import pytest

from tipcflow.domain import InfraError
from tipcflow.domain.run.names import JobId
from tipcflow.execute.node.listing import jobs_by_run, jobs_with_processes, processes, running_jobs

LISTED: dict[str, Any] = {
    "jobs": [
        {"job": "r1/v/train/1", "state": "ended"},
        {"job": "r1/v/train/2", "state": "running"},
        {"job": "r2/v/train/1", "state": "staged"},
    ],
    "processes": [
        {"job": "r1/v/train/1", "pid": 7},
        {"job": "r1/v/train/1", "pid": 8},
        {"job": "r1/v/train_more/1", "pid": 9},
        {"job": "r10/v/train/1", "pid": 10},
    ],
}
FIRST, SECOND, OTHER = JobId("r1", "v/train", 1), JobId("r1", "v/train", 2), JobId("r1", "v/train_more", 1)


def test_jobs_and_processes_are_listed() -> None:
    assert running_jobs(LISTED) == {SECOND, JobId("r2", "v/train", 1)}
    assert [process["pid"] for _, process in processes(LISTED)] == [7, 8, 9, 10]
    assert jobs_by_run(LISTED) == {
        "r1": {FIRST, SECOND, OTHER},
        "r2": {JobId("r2", "v/train", 1)},
        "r10": {JobId("r10", "v/train", 1)},
    }


def test_a_run_and_a_step_are_compared_as_a_whole() -> None:
    assert jobs_with_processes(LISTED, "r1") == [FIRST, OTHER]
    assert jobs_with_processes(LISTED, "r1", "v/train") == [FIRST]
    assert jobs_with_processes(LISTED, "r") == []


@pytest.mark.parametrize("part", ["jobs", "processes"])
def test_an_invalid_job_is_an_error_of_the_node(part: str) -> None:
    listed = LISTED | {part: [{"job": "odd", "state": "running"}]}
    with pytest.raises(InfraError, match="invalid job: 'odd' is not the id of a job"):
        jobs_by_run(listed)
