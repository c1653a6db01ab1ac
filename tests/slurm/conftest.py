"""A real Slurm of four nodes on this machine, shared by all tests of this folder, and an Airflow that uses it."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support import slurm as slurm_support
from tests.support.certify import ROOT, wait_for
from tests.support.programs import missing
from tests.support.scheduler import Scheduler, make_catalog
from tests.support.slurm import LocalSlurm, SlurmSite
from tests.support.sshd import Server

from devcluster.airflow.stack import airflow_stack
from tipcflow.airflow_api.node_connections import connection_of

CONNECTION = "slurm_login"


@pytest.fixture(scope="session")
def shared_slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSlurm]:
    if problem := slurm_support.missing():
        missing(problem)
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


@pytest.fixture
def slow(site: SlurmSite) -> SlurmSite:
    """With trainings that take long enough for a fault."""
    site.edit_params("norm_train:train.py", "norm_train:train.py --step-time 3")
    return site


@dataclass(frozen=True)
class SlurmAirflow:
    """An Airflow that reaches Slurm by SSH.

    Attributes:
        programs: folder of programs that precede those of Slurm on the login node.
    """

    scheduler: Scheduler
    site: SlurmSite
    login: Server

    @property
    def programs(self) -> Path:
        return self.login.folder / "bin"


@pytest.fixture(scope="session")
def shared_airflow(shared_slurm: LocalSlurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmAirflow]:
    folder = tmp_path_factory.mktemp("airflow")
    site = SlurmSite(folder, shared_slurm)
    # Trainings of the tests differ in length, so their runs are no history of each other.
    site.configure_policy(history=1000, min_history=1000)
    dags = make_catalog(site)
    shutil.copy(ROOT / "configs" / "airflow.env", site.configs)
    with shared_slurm.login_node(folder / "login") as login:
        site.log_in_by(login, connection=CONNECTION)
        node = login.node().model_copy(update={"connection": CONNECTION})
        connections = {f"AIRFLOW_CONN_{CONNECTION.upper()}": json.dumps(connection_of(node))}
        plugins = ROOT / "plugins"
        with airflow_stack(
            site.home, dags=dags, plugins=plugins, configs=site.configs, connections=connections
        ) as stack:
            scheduler = Scheduler(site, stack)
            scheduler.wait_for_dags("toy.toy.train_infer_python", "maintenance")
            yield SlurmAirflow(scheduler, site, login)


@pytest.fixture
def airflow(slurm: LocalSlurm, shared_airflow: SlurmAirflow) -> Iterator[SlurmAirflow]:
    """The shared Airflow; its suite and its login node are as they were afterwards, and nothing is allocated."""
    params = shared_airflow.site.suite / "test_tipc" / "configs" / "toy" / "train_infer_python.txt"
    kept = {path: path.read_bytes() for path in (params, shared_airflow.site.policy_file)}
    yield shared_airflow
    for path, data in kept.items():
        path.write_bytes(data)
    shutil.rmtree(shared_airflow.programs, ignore_errors=True)
    # A canceled job is COMPLETING for a while.
    wait_for(lambda: shared_airflow.site.left_behind() == [], what="the end of all jobs and processes", seconds=30)
