"""Allocations whose runs have ended, with fake programs of Slurm."""

import threading

import pytest
from tests.support.stories import a_run
from tests.unit.execute.allocation.conftest import CLUSTER, Login

from tipcflow.domain import Status
from tipcflow.domain.run_documents import AirflowDocument
from tipcflow.execute.allocation import holder
from tipcflow.execute.allocation.document import HolderDocument
from tipcflow.execute.allocation.holder import Holder
from tipcflow.execute.allocation.leftovers import end_leftovers
from tipcflow.store import Store
from tipcflow.transport.connect import connect

pytestmark = pytest.mark.process


def test_leftovers_are_allocations_of_ended_runs(login: Login, store: Store) -> None:
    store.runs.create(a_run("over"))
    store.runs.finish("over", Status.PASS, "", 1.0)
    for number, name in enumerate(("tipc-mine-1", "tipc-over-2", "tipc-unknown-1", "other"), 1):
        login.add(f"{number}|RUNNING|None|2026-11-26T09:46:0{number}|N/A|n1|{name}")
    assert end_leftovers(store, CLUSTER, connect) == [
        "run over: Slurm job 2 was ended",
        "run unknown: Slurm job 3 is unknown to this database; skipped",
    ]
    assert login.jobs() == ["1 RUNNING", "2 CANCELLED", "3 RUNNING", "4 RUNNING"]


def reaped(login: Login, store: Store, run: str = "mine") -> str:
    login.add(f"1|RUNNING|None|2026-11-26T09:46:01|N/A|n1|tipc-{run}-1")
    [line] = end_leftovers(store, CLUSTER, connect, run=run)
    assert login.jobs() == ["1 CANCELLED" if line.endswith("was ended") else "1 RUNNING"]
    return line.removeprefix(f"run {run}: Slurm job 1 ")


def test_allocation_of_a_living_controller_is_left_alone(login: Login, store: Store) -> None:
    with Holder(store, "mine", "ann@ci1 pid 12"):
        assert reaped(login, store) == (
            "is in use by ann@ci1 pid 12; skipped: stop that `tipcflow run`. Without a controller: scancel 1"
        )


def test_allocation_of_a_killed_controller_is_ended(login: Login, store: Store) -> None:
    """Also in a restored database: the record has ended meanwhile."""
    store.documents.put("mine", HolderDocument(owner="ann@ci1 pid 12", until=store.now() - 1))
    assert reaped(login, store) == "was ended"


def test_allocation_of_a_dag_run_is_left_to_airflow(login: Login, store: Store) -> None:
    store.documents.put("mine", AirflowDocument(dag_id="certify", run_id="manual__1"))
    assert reaped(login, store) == (
        "belongs to an active run; skipped: mark DAG run manual__1 of certify as failed. "
        "Without a controller: scancel 1"
    )


def test_allocation_of_a_run_without_a_record_is_left_alone(login: Login, store: Store) -> None:
    assert reaped(login, store).startswith("belongs to a run without a status; skipped")


def test_allocation_of_an_unknown_run_is_ended_by_its_name(login: Login, store: Store) -> None:
    assert reaped(login, store, "lost") == "was ended"


def test_record_of_a_controller_is_renewed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holder, "TTL_S", 0.3)
    renewed = threading.Event()
    with Holder(store, "mine", ""):
        first = store.documents.get("mine", HolderDocument)
        assert first is not None
        for _ in range(300):
            known = store.documents.get("mine", HolderDocument)
            if known is not None and known.until > first.until:
                break
            renewed.wait(0.1)
        else:
            pytest.fail("not renewed")
