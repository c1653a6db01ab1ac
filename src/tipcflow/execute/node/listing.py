"""What a node's runner lists: the jobs of its workspace, and their processes."""

from collections.abc import Mapping
from typing import Any

from tipcflow.domain import InfraError
from tipcflow.domain.run.names import JobId

# States of a job with a running runner (docs/reference/job-folder.md).
_RUNNING_STATES = ("staging", "staged", "running")


def running_jobs(listed: Mapping[str, Any]) -> set[JobId]:
    """Return the jobs with a running runner.

    Raises:
        InfraError: the node lists something that is not a job.
    """
    return {_job(entry) for entry in listed["jobs"] if entry["state"] in _RUNNING_STATES}


def processes(listed: Mapping[str, Any], run: str = "", step: str = "") -> list[tuple[JobId, dict[str, Any]]]:
    """Return the processes of jobs, each with its job.

    Args:
        run, step: only of this run and step; '' for all.

    Raises:
        InfraError: the node lists a process of something that is not a job.
    """
    pairs = [(_job(entry), entry) for entry in listed["processes"]]
    return [(job, entry) for job, entry in pairs if run in ("", job.run) and step in ("", job.step)]


def jobs_with_processes(listed: Mapping[str, Any], run: str = "", step: str = "") -> list[JobId]:
    """Return the jobs that have processes, sorted; see `processes`."""
    return sorted({job for job, _ in processes(listed, run, step)})


def jobs_by_run(listed: Mapping[str, Any]) -> dict[str, set[JobId]]:
    """Return run -> its jobs that are running or have processes."""
    by_run: dict[str, set[JobId]] = {}
    for job in (*running_jobs(listed), *jobs_with_processes(listed)):
        by_run.setdefault(job.run, set()).add(job)
    return by_run


def _job(entry: Mapping[str, Any]) -> JobId:
    try:
        return JobId.parse(str(entry["job"]))
    except ValueError as error:
        raise InfraError(f"the node runner lists an invalid job: {error}") from error
