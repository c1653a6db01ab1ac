"""Parts of Slurm, or the way to it, that fail during a run, for a while or for good."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.slurm import LocalSlurm, SlurmSite
from tests.support.sshd import Server

from tipcflow.domain import Status
from tipcflow.domain.run.failure import FailureClass
from tipcflow.remote.slurm.commands import QUERY_S

pytestmark = pytest.mark.slurm


@pytest.fixture
def login(slow: SlurmSite, slurm: LocalSlurm, tmp_path: Path) -> Iterator[Server]:
    """The login node of the site, which is another machine for it."""
    with slurm.login_node(tmp_path / "login") as server:
        slow.log_in_by(server)
        yield server


@pytest.mark.full
def test_slurmd_restarted_in_time_does_not_end_the_run(slow: SlurmSite) -> None:
    def restart(_: object) -> None:
        slow.slurm.kill_daemon("n2")
        time.sleep(2)
        slow.slurm.start("n2")

    done = slow.run_and(slow.training, restart)
    assert done.code == 0, done.output
    slow.slurm.await_idle()
    assert slow.left_behind() == []


@pytest.mark.full
def test_slurmd_down_for_good_is_a_lost_node(slow: SlurmSite) -> None:
    """Its steps run on, but Slurm declares the node down after SlurmdTimeout and ends the job."""
    done = slow.run_and(slow.training, lambda _: slow.slurm.kill_daemon("n2"))
    assert (done.code, done.run.status) == (5, Status.INFRA_FAILURE), done.output
    assert slow.classes(done.run) == {FailureClass.NODE_LOST}


def test_killed_slurmstepd_is_an_infra_failure(slow: SlurmSite) -> None:
    """Slurm has lost the processes of the step: the starter ends them, and no step of the run may pass on them."""
    done = slow.run_and(slow.training, lambda _: slow.slurm.kill_starter("n2"))
    assert (done.code, done.run.status) == (5, Status.INFRA_FAILURE), done.output
    assert "n2" in done.run.reason
    slow.slurm.await_idle()
    assert slow.left_behind() == []


@pytest.mark.full
def test_controller_of_slurm_away_at_the_start_does_not_end_the_run(site: SlurmSite, tmp_path: Path) -> None:
    """For longer than a query takes: the run has its nodes, but does not know them."""
    started = tmp_path / "started"
    script = f'[ -e {started} ] || {{ touch {started}; sleep 2; }}; exec "$REAL" "$@"'
    site.replace_program(tmp_path / "bin", "scontrol", script)

    def interrupt(_: object) -> None:
        site.slurm.stop("slurmctld")  # saves its state: a killed one forgets a job of its last seconds
        time.sleep(QUERY_S + 5)
        site.slurm.start("slurmctld")

    done = site.run_and(started.exists, interrupt)
    assert done.code == 0, done.output
    assert "Slurm could not list the nodes of an allocation" in done.output
    assert re.search(r"Slurm job \d+ has nodes n\[1-2\]", done.output)


@pytest.mark.full
def test_login_node_away_for_15_s_does_not_end_the_run(slow: SlurmSite, login: Server) -> None:
    def interrupt(_: object) -> None:
        login.close()
        time.sleep(15)
        login.start()

    done = slow.run_and(slow.training, interrupt)
    assert done.code == 0, done.output
    slow.slurm.await_idle()
    assert slow.left_behind() == []


@pytest.mark.full
def test_login_node_away_for_good_leaves_an_allocation_that_reap_ends(slow: SlurmSite, login: Server) -> None:
    slow.configure_policy(waits={"reconnect_s": 5})
    done = slow.run_and(slow.training, lambda _: login.close())
    assert (done.code, done.run.status) == (5, Status.INFRA_FAILURE), done.output
    assert slow.classes(done.run) == {FailureClass.NODE_LOST}
    assert f"scancel --name=tipc-{done.run.id}-1" in done.output
    assert list(slow.slurm.jobs().values()) == ["RUNNING"]
    login.start()
    assert "was ended" in slow.reap()
    slow.slurm.await_idle()
    assert slow.left_behind() == []


def test_unreachable_login_node_is_named_before_anything_starts(slow: SlurmSite, login: Server) -> None:
    login.close()
    done = slow.run("--wait-minutes", "0.1")
    login.start()
    assert (done.code, done.run.status) == (5, Status.INFRA_FAILURE), done.output
    assert "login" in done.run.reason
    assert slow.slurm.jobs() == {}
