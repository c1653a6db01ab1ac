"""A run's allocation, with fake programs of Slurm: requested once, adopted, waited for, ended."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.stories import a_run, open_store

from tipcflow.domain import Cluster, ConfigError, InfraError, Node, SlurmSource, SlurmStep, Status
from tipcflow.domain.run_documents import ClusterDocument
from tipcflow.execute.allocation import client, hold
from tipcflow.execute.allocation.document import AllocationDocument
from tipcflow.execute.allocation.leftovers import end_leftovers
from tipcflow.store import Store
from tipcflow.store.queries.operation import OperationQueries
from tipcflow.transport.connect import connect

pytestmark = pytest.mark.process

NAME = "tipc-mine-1"
# Jobs are lines of the file `jobs` in the form of squeue; programs log their words in `log`.
SQUEUE = """
case "$*" in
    *PENDING,*) cat jobs | grep -E 'PENDING|RUNNING' ;;
    *--format=%i|*"--format=%i "*) sed -n 's/|PENDING.*//p' jobs ;;
    *--name=*) name=${*##*--name=}; name=${name%% *}; grep "|$name\\$" jobs ;;
    *--jobs=*) job=${*##*--jobs=}; job=${job%% *}; grep "^$job|" jobs ;;
esac
exit 0
"""
SBATCH = """
cat > script
name=${*##*--job-name=}; name=${name%% *}
id=$(($(grep -c . jobs) + 1))
echo "$id|PENDING|Resources|2026-11-26T09:46:0$id|2026-11-26T10:16:34||$name" >> jobs
echo $id
"""
SCANCEL = """
case "$*" in
    *--name=*) name=${*##*--name=}; sed -i "/|$name\\$/s/|[A-Z]*|/|CANCELLED|/" jobs ;;
    *) for last; do :; done; sed -i "/^$last|/s/|[A-Z]*|/|CANCELLED|/" jobs ;;
esac
"""
SCONTROL = """
case "$*" in
    *hostnames*) printf 'n3\\nn4\\n' ;;
    *) for last; do :; done; echo "NodeName=$last Arch=x NodeAddr=127.0.0.${last#n} Port=6818 State=ALLOCATED" ;;
esac
"""


class Login:
    """The login node's programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "jobs").touch()
        for name, script in (("squeue", SQUEUE), ("sbatch", SBATCH), ("scancel", SCANCEL), ("scontrol", SCONTROL)):
            self.program(name, script)
        self.program("srun", "exit 0")

    def program(self, name: str, script: str) -> None:
        """Replace a program."""
        path = self.folder / name
        path.write_text(f'#!/bin/sh\ncd {self.folder}\necho "{name} $*" | head -n 1 >> log\n{script}\n')
        path.chmod(0o755)

    def jobs(self) -> list[str]:
        """Return the jobs as `ID STATE`."""
        return [" ".join(line.split("|")[:2]) for line in (self.folder / "jobs").read_text().splitlines()]

    def add(self, *lines: str) -> None:
        """Add jobs."""
        with (self.folder / "jobs").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def become(self, job: str, state: str, nodelist: str = "") -> None:
        """Change the state of a job."""
        lines = []
        for line in (self.folder / "jobs").read_text().splitlines():
            fields = line.split("|")
            lines.append(
                "|".join([job, state, "None", *fields[3:5], nodelist, fields[6]]) if fields[0] == job else line
            )
        (self.folder / "jobs").write_text("".join(f"{line}\n" for line in lines))

    def submissions(self) -> int:
        """Return how often sbatch was called."""
        return (self.folder / "log").read_text().count("sbatch --parsable")


@pytest.fixture
def login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Login:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(client, "APPEARS_S", 0.2)
    monkeypatch.setattr(client, "POLL_S", 0.05)
    monkeypatch.setattr(hold, "POLL_EVERY_S", 0.05)
    monkeypatch.setattr(hold, "RETRY_EVERY_S", 0.05)
    monkeypatch.setattr(hold, "RELEASE_S", 0.5)
    return Login(tmp_path / "bin")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "tipcflow.db") as made:
        made.runs.create(a_run("mine"))
        yield made


CLUSTER = Cluster(
    name="hpc",
    kind="slurm",
    slurm=SlurmSource(
        local=True,
        partition="ci",
        time_limit_minutes=30,
        workspace="/scratch/{node}",
        cache="/scratch/{node}/cache",
    ),
    nodes=tuple(
        Node(
            name=f"slurm-{n}",
            address=f"slurm-{n}",
            python="/p",
            workspace="/scratch/{node}",
            slurm=SlurmStep(local=True),
        )
        for n in (1, 2, 3)
    ),
)
Make = Callable[[], hold.Allocation]


@pytest.fixture
def allocation(store: Store, login: Login) -> Make:
    return lambda: hold.Allocation(store, "mine", CLUSTER, connect, nodes=2)


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
    assert [node.slurm and (node.slurm.job, node.slurm.port, node.slurm.local) for node in cluster.nodes] == [
        ("1", 6818, True)
    ] * 2


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
    allocation().try_once()
    document = store.documents.get("mine", AllocationDocument)
    assert document == AllocationDocument(attempt=2, name="tipc-mine-2", job="2")


def test_node_without_an_address_is_named(login: Login, allocation: Make) -> None:
    allocation().try_once()
    login.become("1", "RUNNING", "n[3-4]")
    job, _ = allocation().try_once()
    login.program("scontrol", SCONTROL.replace("127.0.0.${last#n}", "$last"))
    login.program("getent", "exit 2")
    assert job is not None
    with pytest.raises(InfraError, match="node n3: its address is unknown on the login node"):
        allocation().allocated(job)


def test_end_withdraws_the_request(login: Login, store: Store, allocation: Make) -> None:
    assert allocation().end() == "", "nothing was requested"
    allocation().try_once()
    assert allocation().end() == ""
    assert login.jobs() == ["1 CANCELLED"]


def test_end_that_fails_names_the_command(login: Login, allocation: Make) -> None:
    allocation().try_once()
    login.program("scancel", "echo 'scancel: error: Unable to contact slurm controller' >&2; exit 1")
    assert allocation().end().endswith(f"; end it with: scancel --name={NAME}")


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

    assert hold._await(allocation(), wait_s=30, note=note, cancel=threading.Event()).nodelist == "n[3-4]"
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
        job = hold._await(made, wait_s=60, note=note, cancel=threading.Event())
    assert job.nodelist == "n[3-4]"
    assert lines[1:] == ["node login: no response within 35 s"]


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
    assert end_leftovers(store, CLUSTER, connect, run="mine") == ["run mine: Slurm job 1 was ended"]


def a_request(**fields: object) -> Any:
    """Stands for a resolved request: planning needs a suite."""
    return SimpleNamespace(cluster=CLUSTER, request=SimpleNamespace(evaluates=False, nodes_of="", **fields))


def test_nodes_are_held_until_the_end_of_the_run(
    login: Login, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters: list[Cluster] = []
    monkeypatch.setattr(hold, "replan", lambda store, run, resolved, cluster: clusters.append(cluster))
    plan: Any = SimpleNamespace(nodes=("slurm-1", "slurm-2"))
    notes: list[str] = []
    queued: list[int] = []

    def note(line: str) -> None:
        notes.append(line)
        queued.append(OperationQueries(store.database).numbers(60.0).queued)
        login.become("1", "RUNNING", "n[3-4]")

    def fail() -> None:
        holding = hold.held(
            store, "mine", a_request(), plan, connect, wait_s=30, note=note, cancel=threading.Event()
        )
        with holding as held:
            assert held.fence == 1795688194
            assert login.jobs() == ["1 RUNNING"]
            raise RuntimeError("the run failed")

    with pytest.raises(RuntimeError, match="the run failed"):
        fail()
    assert [node.name for node in clusters[0].nodes] == ["n3", "n4"]
    assert notes[-1] == "Slurm job 1 has nodes n[3-4]"
    assert queued == [1, 0]
    assert login.jobs() == ["1 CANCELLED"]


def test_task_requests_without_waiting(login: Login, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "replan", lambda store, run, resolved, cluster: resolved)
    plan: Any = SimpleNamespace(nodes=("slurm-1", "slurm-2"))
    held, why = hold.try_to_hold(store, "mine", a_request(), plan, connect)
    assert held is None
    assert why.startswith("waiting for Slurm job 1, position 1 of 1")
    login.become("1", "RUNNING", "n[3-4]")
    held, why = hold.try_to_hold(store, "mine", a_request(), plan, connect)
    assert held is not None
    assert why == ""
    login.program("squeue", "echo 'squeue: error: Unable to contact slurm controller' >&2; exit 1")
    assert "could not list its jobs" in hold.try_to_hold(store, "mine", a_request(), plan, connect)[1]


def test_tasks_of_the_first_plan_find_their_allocated_node() -> None:
    document = AllocationDocument(name="tipc-mine-1", planned=("slurm-1", "slurm-2"))
    assert [document.node(name, ("n3", "n4")) for name in ("slurm-1", "slurm-2", "n3")] == ["n3", "n4", "n3"]


def test_names_of_jobs_lead_to_their_runs() -> None:
    run = "20261126t094740-toy-f660"
    assert hold.run_of(hold.job_name(run, 12)) == run
    assert hold.run_of("other-1") == ""
