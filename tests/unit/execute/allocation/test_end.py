"""The end of a run's allocation and of what earlier requests left, and the bound on requests."""

import threading

import pytest
from tests.unit.execute.allocation.conftest import NAME, SBATCH, SQUEUE, Login, Make

from tipcflow.domain import InfraError
from tipcflow.execute.allocation import hold
from tipcflow.execute.allocation.document import AllocationDocument
from tipcflow.store import Store

pytestmark = pytest.mark.process


def test_end_withdraws_the_request(login: Login, store: Store, allocation: Make) -> None:
    assert allocation().end() == "", "nothing was requested"
    allocation().try_once()
    assert allocation().end() == ""
    assert login.jobs() == ["1 CANCELLED"]


def test_end_that_fails_names_the_command(login: Login, allocation: Make) -> None:
    allocation().try_once()
    login.program("scancel", "echo 'scancel: error: Unable to contact slurm controller' >&2; exit 1")
    assert allocation().end().endswith(f"; end it with: scancel --name={NAME}")


def test_end_ends_jobs_of_earlier_requests(login: Login, store: Store, allocation: Make) -> None:
    for number, name in enumerate((NAME, "tipc-mine-2-1", "other"), 1):
        login.add(f"{number}|RUNNING|None|2026-11-26T09:46:0{number}|N/A|n1|{name}")
    store.documents.put("mine", AllocationDocument(attempt=2, name="tipc-mine-2"))
    allocation().try_once()
    assert allocation().end() == ""
    assert login.jobs() == ["1 CANCELLED", "2 RUNNING", "3 RUNNING", "4 CANCELLED"]


def test_job_that_slurm_does_not_list_is_ended_before_the_next_request(login: Login, allocation: Make) -> None:
    allocation().try_once()
    login.program("squeue", f'case "$*" in *--name=*) exit 0 ;; esac\n{SQUEUE}')
    allocation().try_once()
    assert login.jobs() == ["1 CANCELLED", "2 PENDING"]


def test_requests_of_a_run_are_bounded(login: Login, allocation: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "MAX_REQUESTS", 3)
    login.program("sbatch", SBATCH.replace("PENDING", "COMPLETED"))
    with pytest.raises(InfraError, match=r"Slurm job 3 has ended .* the last of 3 requests of the run"):
        hold._await(allocation(), wait_s=30, note=lambda _: None, cancel=threading.Event())
    assert login.submissions() == 3
