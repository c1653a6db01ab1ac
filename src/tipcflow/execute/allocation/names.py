"""Names of Slurm jobs: by them, the allocations of a run are found without a database."""

from tipcflow.remote import paths

# Of the names of all jobs of tipcflow.
PREFIX = "tipc-"


def job_name(run: str, attempt: int) -> str:
    """Return the name of a run's job: unique, and derived from the run alone."""
    return f"{PREFIX}{paths.safe_name(run)}-{attempt}"


def run_of(name: str) -> str:
    """Return the run of a job's name; '' for a job of another program."""
    return name.removeprefix(PREFIX).rpartition("-")[0] if name.startswith(PREFIX) else ""


def is_of(name: str, run: str) -> bool:
    """Whether the job of that name is one of the run, whatever the number of its request."""
    return run_of(name) == paths.safe_name(run)
