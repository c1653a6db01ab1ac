"""What Slurm, its nodes and its users do to a run: every run gets a status, and nothing stays allocated."""

import signal
from pathlib import Path

import pytest
from tests.support.certify import wait_for
from tests.support.slurm import SlurmSite

from tipcflow.domain import Status
from tipcflow.domain.run.failure import FailureClass
from tipcflow.execute.allocation.document import AllocationDocument

pytestmark = pytest.mark.slurm


@pytest.mark.fast
def test_failed_rank_fails_the_run_and_names_its_node(site: SlurmSite) -> None:
    site.edit_params("norm_train:train.py", "norm_train:train.py --inject exit@3")
    done = site.run()
    assert (done.code, done.run.status) == (1, Status.FAILED), done.output
    site.slurm.await_idle()
    assert site.left_behind() == []


def test_node_whose_daemons_die_is_lost(slow: SlurmSite) -> None:
    done = slow.run_and(slow.training, lambda _: slow.slurm.kill_node("n2"))
    assert (done.code, done.run.status) == (5, Status.INFRA_FAILURE), done.output
    assert slow.classes(done.run) == {FailureClass.NODE_LOST}
    assert {failure.node for failure in slow.failures(done.run)} == {"n2"}
    assert "n2" in done.run.reason
    assert slow.slurm.jobs() == {} or set(slow.slurm.jobs().values()) == {"COMPLETING"}


def test_allocation_that_a_user_cancels_is_lost(slow: SlurmSite) -> None:
    done = slow.run_and(slow.training, lambda _: slow.slurm.cancel_all())
    assert (done.code, done.run.status) == (5, Status.INFRA_FAILURE), done.output
    assert slow.classes(done.run) == {FailureClass.NODE_LOST}
    slow.slurm.await_idle()
    assert slow.left_behind() == []


def test_killed_controller_leaves_a_run_that_reap_ends(slow: SlurmSite) -> None:
    slow.run_and(slow.training, lambda process: process.send_signal(signal.SIGKILL))
    assert list(slow.slurm.jobs().values()) == ["RUNNING"]
    assert slow.training(), "the job survives its controller"
    printed = slow.reap()
    run = slow.latest()
    assert run.status is Status.INFRA_FAILURE, printed
    slow.slurm.await_idle()
    assert slow.left_behind() == []


def test_controller_killed_in_the_queue_leaves_a_request_that_reap_ends(site: SlurmSite) -> None:
    with site.slurm.occupied():
        waits = lambda: "PENDING" in site.slurm.jobs().values()  # noqa: E731
        site.run_and(waits, lambda process: process.send_signal(signal.SIGKILL))
        assert waits()
        site.reap()
        assert site.latest().status is Status.INFRA_FAILURE
        assert list(site.slurm.jobs().values()) == ["RUNNING"]


def test_request_beyond_its_deadline_is_withdrawn(site: SlurmSite) -> None:
    with site.slurm.occupied():
        done = site.run("--wait-minutes", "0.1")
        assert (done.code, done.run.status) == (5, Status.INFRA_FAILURE), done.output
        assert "no allocation within 6 s: waiting for Slurm job" in done.run.reason
        assert "position 1 of 1 in partition ci, reason Resources" in done.run.reason
        assert list(site.slurm.jobs().values()) == ["RUNNING"]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("partition", "invalid partition specified: absent; Invalid partition name specified"),
        ("constraint", "Invalid feature specification"),
    ],
)
def test_refused_request_is_a_config_error_with_its_key(site: SlurmSite, key: str, message: str) -> None:
    site.configure_cluster(**{key: "absent"})
    done = site.run()
    assert (done.code, done.run.status) == (2, Status.CONFIG_ERROR), done.output
    assert f"{key}: Slurm refuses the request: {message}" in done.run.reason


@pytest.mark.fast
def test_submission_that_timed_out_is_adopted(site: SlurmSite, tmp_path: Path) -> None:
    message = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
    site.replace_program(tmp_path / "bin", "sbatch", f'"$REAL" "$@" >/dev/null; echo "{message}" >&2; exit 1')
    done = site.run()
    assert done.code == 0, done.output
    with site.store() as store:
        allocation = store.documents.get(done.run.id, AllocationDocument)
    assert allocation is not None
    names = site.slurm.run("squeue", "--states=all", "--noheader", "--format=%j").split()
    assert names.count(allocation.name) == 1


def test_controller_of_slurm_that_restarts_does_not_end_the_run(slow: SlurmSite) -> None:
    def restart(_: object) -> None:
        slow.slurm.stop("slurmctld", signal.SIGKILL)
        slow.slurm.start("slurmctld")

    done = slow.run_and(slow.training, restart)
    assert done.code == 0, done.output


def test_node_without_python_is_named(site: SlurmSite) -> None:
    node = {"python": "/nonexistent/python", "workspace": f"{site.slurm.folder}/work/{{node}}", "slots": 2}
    site.configure_cluster(node=node)
    done = site.run()
    assert (done.code, done.run.status) == (5, Status.INFRA_FAILURE), done.output
    assert "/nonexistent/python: no such interpreter" in done.run.reason
    wait_for(lambda: site.slurm.jobs() == {}, what="the end of the allocation")
