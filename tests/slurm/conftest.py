"""A real Slurm of four nodes on this machine, shared by all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.programs import missing
from tests.support.slurm import LocalSlurm, SlurmSite, missing_programs


@pytest.fixture(scope="session")
def shared_slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSlurm]:
    if absent := missing_programs():
        missing(f"not installed: {', '.join(absent)} (Debian: slurmctld slurmd slurm-client munge)")
    with LocalSlurm(tmp_path_factory.mktemp("slurm") / "s") as running:
        yield running


@pytest.fixture
def slurm(shared_slurm: LocalSlurm) -> Iterator[LocalSlurm]:
    """Slurm with all of its nodes free, also after a test that failed."""
    shared_slurm.await_idle()
    yield shared_slurm
    shared_slurm.recover()


@pytest.fixture
def site(slurm: LocalSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmSite:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    return SlurmSite(tmp_path, slurm)
