"""A run's allocation, with fake programs of Slurm: requested once, adopted, waited for, ended."""

import threading
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.execute.allocation.conftest import CLUSTER, NAME, SBATCH, SCONTROL, SQUEUE, Login, Make

from tipcflow.domain import Cluster, ConfigError, InfraError, SlurmStep
from tipcflow.domain.run.allocation_wait import AllocationWaitDocument, SlurmPlace
from tipcflow.domain.run_documents import ClusterDocument
from tipcflow.execute.allocation import client, hold
from tipcflow.execute.allocation.document import AllocationDocument
from tipcflow.execute.allocation.leftovers import end_leftovers
from tipcflow.store import Store
from tipcflow.store.queries.operation import OperationQueries
from tipcflow.transport.connect import connect

pytestmark = pytest.mark.process


def at(text: str) -> float:
    return datetime.fromisoformat(f"{text}+00:00").timestamp()


def test_run_requests_once_and_reports_its_place(login: Login, allocation: Make) -> None:
    login.add("1|PENDING|Priority|2026-11-26T09:46:00|N/A||other")
    job, why = allocation().try_once()
    assert job is None
    assert why == (
        "waiting for Slurm job 2, position 2 of 2 in partition ci, reason Resources, "
        "expected start 2026-11-26 10:16 UTC"
    )
    assert allocation().try_once() == (None, why)
    assert login.submissions() == 1


def test_place_in_the_queue_is_stored_while_the_run_waits(login: Login, store: Store, allocation: Make) -> None:
    allocation().try_once()
    assert store.documents.get("mine", AllocationWaitDocument) is None, "the run may have its nodes meanwhile"
    store.documents.put("mine", AllocationWaitDocument(since=1.0, until=2.0))
    allocation().try_once()
    place = SlurmPlace(
        job="1", partition="ci", position=1, pending=1, reason="Resources", starts=at("2026-11-26 10:16:34")
    )
    expected = AllocationWaitDocument(since=1.0, until=2.0, place=place)
    assert store.documents.get("mine", AllocationWaitDocument) == expected


def test_running_allocation_becomes_the_nodes_of_the_cluster(login: Login, allocation: Make) -> None:
    allocation().try_once()
    login.become("1", "RUNNING", "n[3-4]")
    job, why = allocation().try_once()
    assert job is not None
    assert why == ""
    cluster = allocation().allocated(job)
    assert [(node.name, node.address, node.workspace, node.cache) for node in cluster.nodes] == [
        ("n3", "127.0.0.3", "/scratch/n3", "/scratch/n3/cache"),
        ("n4", "127.0.0.4", "/scratch/n4", "/scratch/n4/cache"),
    ]
    step = SlurmStep(job="1", name=NAME, port=6818, local=True)
    assert [node.slurm for node in cluster.nodes] == [step, step]


def test_name_is_stored_before_the_request(login: Login, store: Store, allocation: Make) -> None:
    login.program("sbatch", "kill -9 $PPID $$")
    with pytest.raises(InfraError):
        allocation().try_once()
    assert store.documents.get("mine", AllocationDocument) == AllocationDocument(name=NAME)


def test_submission_reported_as_failed_is_adopted(login: Login, store: Store, allocation: Make) -> None:
    login.program("sbatch", f"({SBATCH}) >/dev/null; echo 'sbatch: error: Socket timed out on send' >&2; exit 1")
    assert allocation().try_once()[0] is None
    assert store.documents.get("mine", AllocationDocument) == AllocationDocument(name=NAME, job="1")
    assert login.jobs() == ["1 PENDING"]


def test_second_job_of_a_late_submission_is_ended(login: Login, allocation: Make) -> None:
    allocation().try_once()
    login.add(f"2|PENDING|Resources|2026-11-26T09:47:00|N/A||{NAME}")
    assert "job 1" in allocation().try_once()[1]
    assert login.jobs() == ["1 PENDING", "2 CANCELLED"]


def test_absent_controller_of_slurm_may_pass(login: Login, allocation: Make) -> None:
    login.program(
        "sbatch", "echo 'sbatch: error: Unable to contact slurm controller (connect failure)' >&2; exit 1"
    )
    with pytest.raises(InfraError, match="did not accept the request: Unable to contact") as caught:
        allocation().try_once()
    assert caught.value.passing


def test_invalid_value_is_an_error_of_the_cluster_file(login: Login, allocation: Make) -> None:
    message = "sbatch: error: Batch job submission failed: Invalid qos specification"
    login.program("sbatch", f"echo '{message}' >&2; exit 1")
    with pytest.raises(ConfigError, match="hpc: qos: Slurm refuses the request: Invalid qos specification"):
        allocation().try_once()


def test_other_refusal_is_final(login: Login, allocation: Make) -> None:
    login.program("sbatch", "echo 'sbatch: error: Job violates accounting/QOS policy' >&2; exit 1")
    with pytest.raises(InfraError, match="Job violates") as caught:
        allocation().try_once()
    assert not caught.value.passing


def test_job_that_ends_in_the_queue_is_reported(login: Login, allocation: Make) -> None:
    allocation().try_once()
    login.become("1", "CANCELLED")
    with pytest.raises(InfraError, match="Slurm job 1 is CANCELLED before it had nodes"):
        allocation().try_once()
    assert login.submissions() == 1


def test_run_whose_allocation_has_ended_gets_another(login: Login, store: Store, allocation: Make) -> None:
    allocation().try_once()
    login.become("1", "RUNNING", "n[3-4]")
    job, _ = allocation().try_once()
    assert job is not None
    store.documents.put("mine", ClusterDocument(allocation().allocated(job)))
    login.become("1", "NODE_FAIL", "n[3-4]")
    notes: list[str] = []
    allocation(note=notes.append).try_once()
    assert notes == ["Slurm job 1 has ended (NODE_FAIL): the run requests another allocation"]
    document = store.documents.get("mine", AllocationDocument)
    assert document == AllocationDocument(attempt=2, name="tipc-mine-2", job="2")


def test_allocation_that_ended_unused_is_requested_again(login: Login, store: Store, allocation: Make) -> None:
    """The task found no worker before the starters ended."""
    allocation().try_once()
    login.become("1", "COMPLETING", "n[3-4]")
    assert allocation().try_once() == (None, "Slurm job 1 ended before the run used its nodes (COMPLETING)")
    assert login.submissions() == 1, "its final state is unknown"
    login.become("1", "COMPLETED", "n[3-4]")
    notes: list[str] = []
    assert allocation(note=notes.append).try_once()[1].startswith("waiting for Slurm job 2")
    assert notes == ["Slurm job 1 has ended (COMPLETED): the run requests another allocation"]
    document = store.documents.get("mine", AllocationDocument)
    assert document == AllocationDocument(attempt=2, name="tipc-mine-2", job="2")


def test_allocation_that_slurm_has_forgotten_is_requested_again(login: Login, allocation: Make) -> None:
    allocation().try_once()
    (login.folder / "jobs").write_text("")
    notes: list[str] = []
    assert allocation(note=notes.append).try_once()[0] is None
    assert notes == ["Slurm job 1 has ended: the run requests another allocation"]
    assert login.submissions() == 2


def test_unused_allocations_are_requested_until_the_deadline(login: Login, allocation: Make) -> None:
    login.program("sbatch", SBATCH.replace("PENDING", "COMPLETED"))
    with pytest.raises(InfraError, match=r"no allocation within 2 s: Slurm job \d+ ended before the run used"):
        hold._await(allocation(), wait_s=2.0, note=lambda _: None, cancel=threading.Event())
    assert login.submissions() > 1


def test_node_without_an_address_is_named(login: Login, allocation: Make) -> None:
    allocation().try_once()
    login.become("1", "RUNNING", "n[3-4]")
    job, _ = allocation().try_once()
    login.program("scontrol", SCONTROL.replace("127.0.0.$n", "n$n"))
    login.program("getent", "exit 2")
    assert job is not None
    with pytest.raises(InfraError, match="node n3: its address is unknown on the login node"):
        allocation().allocated(job)


def test_wait_ends_at_its_deadline_with_the_reason(login: Login, allocation: Make) -> None:
    notes: list[str] = []
    with pytest.raises(InfraError, match=r"no allocation within 0.2 s: waiting for Slurm job 1, position 1 of 1"):
        hold._await(allocation(), wait_s=0.2, note=notes.append, cancel=threading.Event())
    assert len(notes) == 1


def test_wait_survives_an_absent_controller(login: Login, allocation: Make) -> None:
    notes: list[str] = []
    login.program("squeue", "echo 'squeue: error: Unable to contact slurm controller' >&2; exit 1")

    def note(line: str) -> None:
        notes.append(line)
        if "could not list its jobs" in line:
            login.program("squeue", SQUEUE)
        elif "waiting" in line:
            login.become("1", "RUNNING", "n[3-4]")

    job, cluster = hold._await(allocation(), wait_s=30, note=note, cancel=threading.Event())
    assert job.nodelist == "n[3-4]"
    assert [node.name for node in cluster.nodes] == ["n3", "n4"]
    assert len(notes) == 2


def test_wait_survives_a_login_node_that_does_not_respond(
    login: Login, allocation: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the run has a request: before it, the cluster file or the connection may be wrong."""
    find, silent = client.SlurmClient.find, InfraError.of_node("login", "no response within 35 s")
    errors = [silent]

    def fail_first(slurm: client.SlurmClient, name: str) -> object:
        if errors:
            raise errors.pop()
        return find(slurm, name)

    monkeypatch.setattr(client.SlurmClient, "find", fail_first)
    lines: list[str] = []

    def note(line: str) -> None:
        lines.append(line)
        if len(lines) == 1:
            errors.append(silent)
        elif line == silent.message:
            login.become("1", "RUNNING", "n[3-4]")

    with allocation() as made:
        with pytest.raises(InfraError, match="no response within 35 s"):
            hold._await(made, wait_s=60, note=note, cancel=threading.Event())
        job, _ = hold._await(made, wait_s=60, note=note, cancel=threading.Event())
    assert job.nodelist == "n[3-4]"
    assert lines[1:] == ["node login: no response within 35 s"]


ABSENT = "echo 'error: Unable to contact slurm controller (connect failure)' >&2; exit 1"


@pytest.mark.parametrize(("program", "script"), [("scontrol", SCONTROL), ("srun", "exit 0")])
def test_wait_survives_an_absent_controller_as_the_job_starts(
    login: Login, allocation: Make, program: str, script: str
) -> None:
    allocation().try_once()
    login.become("1", "RUNNING", "n[3-4]")
    login.program(program, ABSENT)
    lines: list[str] = []

    def note(line: str) -> None:
        lines.append(line)
        login.program(program, script)

    job, cluster = hold._await(allocation(note=lines.append), wait_s=30, note=note, cancel=threading.Event())
    assert (job.id, [node.name for node in cluster.nodes]) == ("1", ["n3", "n4"])
    assert lines[0].endswith("of an allocation: error: Unable to contact slurm controller (connect failure)")
    assert lines[1:] == ["Slurm job 1 has nodes n[3-4]"]


def test_wait_for_the_nodes_of_a_job_ends_at_its_deadline(login: Login, allocation: Make) -> None:
    allocation().try_once()
    login.become("1", "RUNNING", "n[3-4]")
    login.program("scontrol", ABSENT)
    with pytest.raises(InfraError, match=r"no allocation within 0.2 s: Slurm could not list the nodes"):
        hold._await(allocation(), wait_s=0.2, note=lambda _: None, cancel=threading.Event())


def test_starter_that_does_not_respond_ends_no_wait(login: Login, allocation: Make) -> None:
    """Connections to the nodes report why."""
    allocation().try_once()
    login.become("1", "RUNNING", "n[3-4]")
    login.program("srun", "echo 'srun: error: n3: task 0: Exited with exit code 1' >&2; exit 1")
    notes: list[str] = []
    hold._await(allocation(note=notes.append), wait_s=30, note=notes.append, cancel=threading.Event())
    why = "srun: error: n3: task 0: Exited with exit code 1"
    assert notes == ["Slurm job 1 has nodes n[3-4]", f"the nodes of Slurm job 1 do not respond yet: {why}"]


def test_wait_ends_when_a_user_stops_the_run(login: Login, allocation: Make) -> None:
    cancel = threading.Event()
    with pytest.raises(InfraError, match="stopped while waiting"):
        hold._await(allocation(), wait_s=30, note=lambda _: cancel.set(), cancel=cancel)


def test_release_ends_the_allocation_of_a_dead_controller(login: Login, store: Store, allocation: Make) -> None:
    assert hold.release(store, "mine", connect) == "", "a run that was never resolved"
    store.documents.put("mine", ClusterDocument(CLUSTER))
    allocation().try_once()
    assert hold.release(store, "mine", connect) == ""
    assert login.jobs() == ["1 CANCELLED"]


OWNER = "ann@ci1 pid 12"


def a_request(**fields: object) -> Any:
    """Stands for a resolved request: planning needs a suite."""
    return SimpleNamespace(
        cluster=CLUSTER, request=SimpleNamespace(evaluates=False, nodes_of="", owner=OWNER, **fields)
    )


def test_nodes_are_held_until_the_end_of_the_run(
    login: Login, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters: list[Cluster] = []
    monkeypatch.setattr(hold, "replan", lambda store, run, resolved, cluster: clusters.append(cluster))
    plan: Any = SimpleNamespace(nodes=("slurm-1", "slurm-2"))
    notes: list[str] = []
    queued: list[int] = []

    def count() -> None:
        queued.append(OperationQueries(store.database).numbers(60.0).queued)

    def note(line: str) -> None:
        notes.append(line)
        count()
        login.become("1", "RUNNING", "n[3-4]")

    def fail() -> None:
        holding = hold.held(
            store, "mine", a_request(), plan, connect, wait_s=30, note=note, cancel=threading.Event()
        )
        with holding as held:
            count()
            assert held.fence == 1795688194
            used = ["run mine: Slurm job 1 is in use by ann@ci1 pid 12; skipped: stop that `tipcflow run`."]
            assert [line.partition(" Without")[0] for line in reap(store)] == used
            assert login.jobs() == ["1 RUNNING"]
            raise RuntimeError("the run failed")

    with pytest.raises(RuntimeError, match="the run failed"):
        fail()
    assert [node.name for node in clusters[0].nodes] == ["n3", "n4"]
    assert notes[-1] == "Slurm job 1 has nodes n[3-4]"
    assert (queued[0], queued[-1]) == (1, 0)
    assert login.jobs() == ["1 CANCELLED"]


def reap(store: Store) -> list[str]:
    return end_leftovers(store, CLUSTER, connect, run="mine")


def test_task_requests_without_waiting(login: Login, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "replan", lambda store, run, resolved, cluster: resolved)
    plan: Any = SimpleNamespace(nodes=("slurm-1", "slurm-2"))
    notes: list[str] = []

    def try_to_hold() -> tuple[hold.Held | None, str]:
        return hold.try_to_hold(store, "mine", a_request(), plan, connect, note=notes.append)

    held, why = try_to_hold()
    assert held is None
    assert why.startswith("waiting for Slurm job 1, position 1 of 1")
    login.become("1", "RUNNING", "n[3-4]")
    login.program("scontrol", ABSENT)
    held, why = try_to_hold()
    assert held is None
    assert "could not list the nodes of an allocation" in why
    login.program("scontrol", SCONTROL)
    held, why = try_to_hold()
    assert held is not None
    assert (why, notes) == ("", ["Slurm job 1 has nodes n[3-4]"])
    login.program("squeue", "echo 'squeue: error: Unable to contact slurm controller' >&2; exit 1")
    assert "could not list its jobs" in try_to_hold()[1]


def test_tasks_of_the_first_plan_find_their_allocated_node() -> None:
    document = AllocationDocument(name="tipc-mine-1", planned=("slurm-1", "slurm-2"))
    assert [document.node(name, ("n3", "n4")) for name in ("slurm-1", "slurm-2", "n3")] == ["n3", "n4", "n3"]
