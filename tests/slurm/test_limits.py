"""What limits an allocation: its time, the time until its first use, the state of its partition, and the number of
jobs that Slurm accepts."""

import re
from pathlib import Path

import pytest
from tests.support.slurm import SlurmSite

from tipcflow.domain import Status
from tipcflow.domain.run.failure import FailureClass
from tipcflow.execute.allocation.document import AllocationDocument

pytestmark = pytest.mark.slurm


@pytest.mark.full
def test_allocation_that_reaches_its_time_limit_is_lost(slow: SlurmSite) -> None:
    slow.edit_params("--step-time 3", "--step-time 30")
    slow.configure_cluster(time_limit_minutes=1)
    done = slow.run()
    assert (done.code, done.run.status) == (5, Status.INFRA_FAILURE), done.output
    assert slow.classes(done.run) == {FailureClass.NODE_LOST}
    assert "TimeLimit)" in done.run.reason
    slow.slurm.await_idle()
    assert slow.left_behind() == []


@pytest.mark.fast
def test_allocation_that_ended_unused_is_requested_again(site: SlurmSite, tmp_path: Path) -> None:
    site.leave_first_unused(tmp_path / "bin", until_ended=True)
    done = site.run()
    assert done.code == 0, done.output
    assert re.search(r"ended before the run used its nodes \((COMPLETING|COMPLETED)", done.output)
    assert "has ended (COMPLETED): the run requests another allocation" in done.output
    with site.store() as store:
        allocation = store.documents.get(done.run.id, AllocationDocument)
    assert allocation is not None
    assert (allocation.attempt, allocation.name) == (2, f"tipc-{done.run.id}-2")


def test_partition_that_is_down_is_named_while_the_run_waits(site: SlurmSite) -> None:
    site.slurm.set_partition("DOWN")
    done = site.run("--wait-minutes", "0.1")
    assert (done.code, done.run.status) == (5, Status.INFRA_FAILURE), done.output
    assert "reason PartitionDown" in done.run.reason
    assert site.slurm.jobs() == {}, "the request was withdrawn"


def test_partition_that_accepts_no_jobs_is_a_config_error(site: SlurmSite) -> None:
    site.slurm.set_partition("INACTIVE")
    done = site.run("--wait-minutes", "0.1")
    assert (done.code, done.run.status) == (2, Status.CONFIG_ERROR), done.output
    assert "partition: Slurm refuses the request" in done.run.reason


@pytest.mark.full
def test_full_queue_is_retried_until_the_deadline(site: SlurmSite) -> None:
    with site.slurm.occupied(), site.slurm.full_queue():
        done = site.run("--wait-minutes", "0.1")
        assert (done.code, done.run.status) == (5, Status.INFRA_FAILURE), done.output
        assert "no allocation within 6 s" in done.run.reason
        assert list(site.slurm.jobs().values()) == ["RUNNING"]
