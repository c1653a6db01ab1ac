"""Paths on a node, all below its workspace (docs/reference/job-folder.md)."""

from tipcflow.domain import JobSpec, Node
from tipcflow.domain.build import FrameworkBuild
from tipcflow.domain.run.names import JobId
from tipcflow.remote.bundle import runner_name
from tipcflow.remote.runner.files import job_folder, log_name, safe_name

__all__ = [
    "job_dir",
    "job_file",
    "log_file",
    "run_bin",
    "run_dir",
    "run_root",
    "run_top",
    "runner_path",
    "safe_name",
    "suite_archive",
    "wheel",
]


def runner_path(node: Node) -> str:
    """The runner of this version of tipcflow."""
    return f"{node.workspace}/bin/{runner_name()}"


def suite_archive(node: Node, sha256: str) -> str:
    """The archive of the suite's code, by content hash: reused by later runs."""
    return f"{node.workspace}/suites/{sha256}.tar.gz"


def wheel(node: Node, build: FrameworkBuild) -> str:
    """The wheel of a framework build in the node's cache, by content hash."""
    return f"{node.cache_folder}/wheels/{build.sha256}/{build.wheel}"


def run_dir(node: Node, run: str) -> str:
    """The folder of one run, without its job folders."""
    return f"{node.workspace}/runs/{safe_name(run)}"


def run_root(node: Node, run: str) -> str:
    """The suite's root in one run: commands' `cwd` and outputs are relative to it."""
    return f"{run_dir(node, run)}/src"


def run_top(node: Node, run: str, below: str = "") -> str:
    """The folder that a suite's archive is unpacked to in one run.

    Args:
        below: the suite's root in the archive; `run_root` is then a link to it.
    """
    return f"{run_dir(node, run)}/repository" if below else run_root(node, run)


def run_bin(node: Node, run: str) -> str:
    """The folder that comes first on PATH in one run: `python`, `pip` … of the node's environment."""
    return f"{run_dir(node, run)}/bin"


def job_dir(node: Node, run: str, step: str, attempt: int) -> str:
    """The job folder of one attempt of one step."""
    return job_folder(node.workspace, str(JobId(run, step, attempt)))


def job_file(spec: JobSpec) -> str:
    """Where the controller puts the job's description."""
    return f"{job_folder(spec.workspace, str(spec.id))}/job.json"


def log_file(job: str, leg: str = "") -> str:
    """The log of a leg ('' for a step's only command) in a job folder."""
    return f"{job}/{log_name(leg)}"
