"""The version of Slurm on the login node and its refusals, with fake programs."""

import re
from pathlib import Path

import pytest
from tests.unit.execute.allocation.conftest import SCANCEL, Login, Make

from tipcflow.cli.doctor.nodes import check_nodes
from tipcflow.domain import ConfigError, InfraError
from tipcflow.execute.allocation.document import AllocationDocument
from tipcflow.store import Store

pytestmark = pytest.mark.process
ERROR = "hpc: login: Slurm on the login node is too old; found '21.08.8'; expected 22.05 or newer"

FILE = """name: hpc
kind: slurm
login: {local: true}
nodes: 2
time_limit_minutes: 30
node: {python: /p, workspace: "/scratch/{node}"}
"""


def install(login: Login, version: str) -> None:
    """Make the programs those of a version of Slurm; before 22.05, scancel has no `--me`."""
    refusal = "echo 'scancel: unrecognized option --me' >&2; exit 1" if version < "22.05" else SCANCEL
    login.program("scancel", f'case "$*" in --version) echo "slurm {version}" ;; *) {refusal}\n ;; esac')


def test_older_slurm_is_refused_before_the_request(login: Login, store: Store, allocation: Make) -> None:
    install(login, "21.08.8")
    with pytest.raises(ConfigError) as caught:
        allocation().try_once()
    assert str(caught.value) == ERROR
    assert (login.submissions(), login.jobs()) == (0, [])
    assert store.documents.get("mine", AllocationDocument) is None
    # No job has to be ended.
    assert allocation().end() == ""


def test_version_is_checked_once_per_run(login: Login, allocation: Make) -> None:
    install(login, "22.05.8")
    for _ in range(3):
        assert allocation().try_once()[0] is None
    assert (login.folder / "log").read_text().count("scancel --version") == 1
    assert allocation().end() == ""
    assert login.jobs() == ["1 CANCELLED"]


@pytest.mark.parametrize(
    ("version", "found"),
    [("21.08.8", (False, ERROR)), ("24.05.1", (True, "24.05.1, 0 jobs of the user in the queue"))],
)
def test_doctor_checks_the_version(login: Login, tmp_path: Path, version: str, found: tuple[bool, str]) -> None:
    install(login, version)
    (tmp_path / "hpc.yaml").write_text(FILE)
    (finding,) = check_nodes(str(tmp_path / "hpc.yaml"), tmp_path)
    assert (finding.ok, finding.text) == found


LIMIT = (
    "sbatch: error: AssocMaxSubmitJobLimit\n"
    "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit)\n"
)


def test_limit_on_submitted_jobs_is_named_and_awaited(login: Login, allocation: Make) -> None:
    login.program("sbatch", f"printf '{LIMIT}' >&2; exit 1")
    expected = "AssocMaxSubmitJobLimit; Job violates accounting/QOS policy (job submit limit)"
    with pytest.raises(InfraError, match=re.escape(f"did not accept the request: {expected}")) as caught:
        allocation().try_once()
    assert caught.value.passing
