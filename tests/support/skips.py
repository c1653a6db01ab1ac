"""The only skips that pass with CI=true; `tests/conftest.py` fails every other one.

An entry needs a reason why no installation of the requirements, or none that CI can afford, makes the test run.
"""

from dataclasses import dataclass

import pytest
from tests.support.programs import is_ci


@dataclass(frozen=True)
class Allowed:
    """Skips that CI accepts.

    Attributes:
        where: the beginning of a test's or a file's path.
        message: the beginning of the skip's message.
        because: why the requirement may be missing in CI.
    """

    where: str
    message: str
    because: str


_RUNNER = "tests/unit/remote/runner"
_KERNEL = "the kernel and the container of the CI host decide"
_TORCH = "PyTorch's wheel has about 1 GB; only make test-full installs it"
_SUITES = "clones of the public suites are not part of the repository"
_IMAGE = "part of the image, which make test does not build"
_CHART = "Helm and Airflow's chart come from no package index that CI uses"
ALLOWED = (
    Allowed(f"{_RUNNER}/test_oom.py", "no memory cgroup can be made here", _KERNEL),
    Allowed(f"{_RUNNER}/test_guard.py", "no cgroup v2 that may be written here", _KERNEL),
    Allowed("tests/unit/remote/test_ports.py", "this machine has no such addresses", _KERNEL),
    Allowed("tests/slurm/", "not installed: ", "the daemons of Slurm are packages of the distribution"),
    Allowed("tests/cluster/containers/", "not installed: ", "most containers cannot run an engine"),
    Allowed("tests/cluster/test_autolog.py", "no .tipcflow/envs/node-autolog", "the package index has no AutoLog"),
    Allowed("tests/cluster/pytorch/", "no .tipcflow/envs/node-torch", _TORCH),
    Allowed("tests/cluster/test_launch_torch.py", "no .tipcflow/envs/node-torch", _TORCH),
    Allowed("tests/e2e/suites/", "TIPC_SUITES names no folder", _SUITES),
    Allowed("tests/unit/github/client/test_contract.py", "TIPC_PRISM names no folder", "packages of npm"),
    Allowed("tests/ui/test_accessibility.py", "npm is not installed", "axe-core has another license (MPL-2.0)"),
    Allowed("tests/ui/test_accessibility.py", "axe-core is not available", "axe-core comes from npm's registry"),
    Allowed("tests/unit/docker/test_start.py", "tini is not installed", _IMAGE),
    Allowed("tests/unit/docker/test_certificates.py", "nginx is not installed", _IMAGE),
    Allowed("tests/unit/docker/test_certificates.py", "caddy is not installed", "nginx is the proxy of compose"),
    Allowed("tests/ui/deployed/", "nginx is not installed", _IMAGE),
    Allowed("tests/ui/deployed/", "prometheus is not installed", "the deployment's Prometheus is the site's own"),
    Allowed("tests/unit/docker/test_monitoring.py", "promtool is not installed", _IMAGE),
    Allowed("tests/unit/docker/test_helm.py", "helm is not installed", _CHART),
    Allowed("tests/unit/docker/test_helm.py", "TIPCFLOW_HELM_CHART names no package", _CHART),
    Allowed("tests/unit/docker/test_helm.py", "kubernetes is not installed", "only Airflow's provider needs it"),
    Allowed(
        f"{_RUNNER}/test_observer.py",
        "this Python has no shared library to copy",
        "some builds of Python link all modules into the interpreter",
    ),
    Allowed(
        "tests/unit/plan/test_oracle.py",
        "compares the repository's records with all records",
        "all records are 40 times as large as the repository's; TIPC_ORACLE names their folder",
    ),
    Allowed(
        "tests/unit/store/leases/test_locks.py",
        "a SQLite file is used by one machine",
        "not a requirement: the test runs with PostgreSQL, its other parameter",
    ),
)


def find_allowed(where: str, message: str) -> Allowed | None:
    """The entry that accepts a skip."""
    for allowed in ALLOWED:
        if where.startswith(allowed.where) and message.startswith(allowed.message):
            return allowed
    return None


def refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """With CI=true, turn a skip that is not in the list into a failure."""
    if not is_ci() or report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    message = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    message = message.removeprefix("Skipped: ")
    if find_allowed(report.nodeid, message) is None:
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: skipped with CI=true: {message} (allowed: tests/support/skips.py)"
