"""Chains as DAGs in a real Airflow, on nodes that a real Slurm allocates."""

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
from tests.support.certify import wait_for

from devcluster.local_nodes.processes import children
from tipcflow.airflow_api import DagRun, RunState
from tipcflow.domain import Run, Status
from tipcflow.domain.run.allocation_wait import SlurmPlace
from tipcflow.domain.run.failure import FailureClass
from tipcflow.store.queries.operation import OperationQueries

if TYPE_CHECKING:
    from tests.slurm.conftest import SlurmAirflow

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]
SLOW = "norm_train:train.py --step-time 3"


def judged(airflow: "SlurmAirflow", dag_run: DagRun) -> Run:
    """The run after its DAG run and its teardowns have ended."""
    airflow.scheduler.ended(dag_run, 400)
    wait_for(lambda: airflow.scheduler.run_of(dag_run).status is not None, what="the verdict", seconds=120)
    return airflow.scheduler.run_of(dag_run)


def training(airflow: "SlurmAirflow") -> DagRun:
    """A DAG run whose long training runs on its nodes."""
    airflow.site.edit_params("norm_train:train.py", SLOW)
    dag_run = airflow.scheduler.start()
    airflow.scheduler.until(dag_run, airflow.site.training, "the training", 150)
    return dag_run


def allocations(airflow: "SlurmAirflow", run: str) -> list[str]:
    """The names of all jobs of a run that Slurm knows, also of ended ones."""
    names = airflow.site.slurm.run("squeue", "--states=all", "--noheader", "--format=%j").split()
    return [name for name in names if name.startswith(f"tipc-{run}-")]


def events(airflow: "SlurmAirflow", run: str) -> str:
    """The progress events that the run's page shows."""
    return (airflow.site.home / "runs" / run / "events.jsonl").read_text()


def queued(airflow: "SlurmAirflow") -> int:
    """The number of queued runs in the metrics."""
    with airflow.site.store() as store:
        return OperationQueries(store.database).numbers(3600.0).queued


def place_in_queue(airflow: "SlurmAirflow") -> SlurmPlace | None:
    """Return the place of the only waiting run, as the pages show it."""
    with airflow.site.store() as store:
        (wait,) = store.queue.in_slurm().values()
    return wait.place


def test_chain_waits_in_the_queue_of_slurm_and_passes(airflow: "SlurmAirflow") -> None:
    scheduler, slurm = airflow.scheduler, airflow.site.slurm
    with slurm.occupied():
        dag_run = scheduler.start(seed=7)
        scheduler.until(dag_run, lambda: scheduler.states(dag_run).get("acquire") == "deferred", "the queue", 120)
        (job,) = [job for job, state in slurm.jobs().items() if state == "PENDING"]
        line = f"waiting for Slurm job {job}, position 1 of 1 in partition ci, reason Resources"
        assert line in scheduler.log(dag_run, "acquire")
        assert line in events(airflow, dag_run.run)
        assert queued(airflow) == 1
        place = SlurmPlace(job=job, partition="ci", position=1, pending=1, reason="Resources")
        assert place_in_queue(airflow) == place
        slurm.run("scontrol", "update", f"jobid={job}", "starttime=now+1day")
        expected = "reason BeginTime, expected start"
        wait_for(lambda: expected in events(airflow, dag_run.run), what="the expected start", seconds=60)
        wait_for(lambda: place_in_queue(airflow) != place, what="the stored place", seconds=30)
        later = place_in_queue(airflow)
        assert later is not None
        assert (later.job, later.reason) == (job, "BeginTime")
        assert later.starts is not None
        slurm.run("scontrol", "update", f"jobid={job}", "starttime=now")
    run = judged(airflow, dag_run)
    assert run.status is Status.PASS, run.reason
    assert scheduler.now(dag_run).state is RunState.SUCCESS
    assert allocations(airflow, run.id) == [f"tipc-{run.id}-1"]
    states = scheduler.states(dag_run)
    assert set(states.values()) <= {"success", "skipped"}
    assert expected in scheduler.log(dag_run, "acquire")
    with airflow.site.store() as store:
        losses = store.measurements.of(run.id, metric="loss")
        assert store.queue.in_slurm() == {}
    assert {(loss.node, loss.rank) for loss in losses} == {("n1", 0), ("n1", 1), ("n2", 2), ("n2", 3)}


@pytest.mark.full
def test_allocation_that_ended_before_its_task_is_requested_again(airflow: "SlurmAirflow") -> None:
    """As if no worker was free for a quarter of an hour."""
    site, scheduler = airflow.site, airflow.scheduler
    site.leave_first_unused(airflow.programs, until_ended=False)
    with site.slurm.occupied():
        dag_run = scheduler.start()
        scheduler.until(dag_run, lambda: scheduler.states(dag_run).get("acquire") == "deferred", "the queue", 120)
    run = judged(airflow, dag_run)
    assert run.status is Status.PASS, run.reason
    assert f"tipc-{run.id}-2" in allocations(airflow, run.id)
    assert "has ended (COMPLETED): the run requests another allocation" in scheduler.log(dag_run, "acquire")


@pytest.mark.full
def test_run_marked_failed_in_the_queue_withdraws_its_request(airflow: "SlurmAirflow") -> None:
    scheduler, slurm = airflow.scheduler, airflow.site.slurm
    with slurm.occupied():
        dag_run = scheduler.start()
        scheduler.until(dag_run, lambda: scheduler.states(dag_run).get("acquire") == "deferred", "the queue", 120)
        scheduler.api.set_state(dag_run.dag_id, dag_run.run_id, "failed")
        run = judged(airflow, dag_run)
        assert run.status is Status.CANCELLED, run.reason
        assert list(slurm.jobs().values()) == ["RUNNING"]


@pytest.mark.full
def test_run_marked_failed_in_its_training_ends_its_allocation(airflow: "SlurmAirflow") -> None:
    dag_run = training(airflow)
    airflow.scheduler.api.set_state(dag_run.dag_id, dag_run.run_id, "failed")
    run = judged(airflow, dag_run)
    assert run.status is Status.CANCELLED, run.reason
    airflow.site.slurm.await_idle()


@pytest.mark.full
def test_node_that_fails_is_an_infra_failure(airflow: "SlurmAirflow") -> None:
    dag_run = training(airflow)
    airflow.site.slurm.kill_node("n2")
    run = judged(airflow, dag_run)
    assert run.status is Status.INFRA_FAILURE, run.reason
    assert airflow.site.classes(run) == {FailureClass.NODE_LOST}
    assert {failure.node for failure in airflow.site.failures(run)} == {"n2"}
    assert "n2" in run.reason
    airflow.site.slurm.recover()


@pytest.mark.full
def test_worker_killed_after_sbatch_adopts_the_request(airflow: "SlurmAirflow") -> None:
    """The request is accepted, but its ID reaches no process."""
    site, scheduler = airflow.site, airflow.scheduler
    flag = site.slurm.folder / "submitted"
    flag.unlink(missing_ok=True)
    script = f'"$REAL" "$@"; code=$?; [ -e {flag} ] || {{ touch {flag}; sleep 30; }}; exit $code'
    site.replace_program(airflow.programs, "sbatch", script)
    dag_run = scheduler.start()
    scheduler.until(dag_run, flag.exists, "sbatch", 120)
    (busy,) = [
        (worker, *below) for worker in children(scheduler.stack.pids["scheduler"]) if (below := children(worker))
    ]
    for pid in reversed(busy):
        os.kill(pid, signal.SIGKILL)
    run = judged(airflow, dag_run)
    assert run.status is Status.PASS, run.reason
    assert allocations(airflow, run.id) == [f"tipc-{run.id}-1"]


@pytest.mark.full
def test_scheduler_killed_in_the_training_finds_the_allocation_again(airflow: "SlurmAirflow") -> None:
    dag_run = training(airflow)
    stack = airflow.scheduler.stack
    stack.kill("scheduler")
    time.sleep(3)
    stack.restart("scheduler")
    stack.wait_ready()
    run = judged(airflow, dag_run)
    assert run.status is Status.PASS, run.reason
    assert allocations(airflow, run.id) == [f"tipc-{run.id}-1"]


@pytest.mark.full
def test_allocation_of_a_dag_run_without_teardowns_is_ended_by_maintenance(airflow: "SlurmAirflow") -> None:
    """A user marks all tasks as successful, the last ones first: neither `collect` nor `release` run."""
    dag_run = training(airflow)
    scheduler = airflow.scheduler
    names = list(scheduler.states(dag_run))
    order = ("verdict", "judge", "release", "collect", "infer_gpu", "infer_cpu", "export", "eval", "train")
    assert {name.partition("[")[0] for name in names} == {*order, "prepare", "acquire", "resolve"}
    paths = {task.task_id.rpartition(".")[2]: task.task_id for task in scheduler.tasks(dag_run)}
    for name in order:
        path = f"/api/v2/dags/{dag_run.dag_id}/dagRuns/{dag_run.run_id}/taskInstances/{paths[name]}"
        scheduler.call("PATCH", path, json={"new_state": "success"})
    scheduler.ended(dag_run)
    assert scheduler.run_of(dag_run).status is None
    assert list(airflow.site.slurm.jobs().values()) == ["RUNNING"]
    swept = scheduler.ended(scheduler.start("maintenance"))
    run = scheduler.run_of(dag_run)
    assert run.status is Status.INFRA_FAILURE, run.reason
    assert "DAG run ended without a run status" in run.reason
    assert run.id in scheduler.log(swept, "runs_without_status")
    airflow.site.slurm.await_idle()


@pytest.mark.full
def test_allocation_without_a_run_is_ended_by_maintenance(airflow: "SlurmAirflow") -> None:
    """That of a run whose status was stored before `scancel` succeeded."""
    slurm, scheduler = airflow.site.slurm, airflow.scheduler
    _, run = scheduler.certify()
    assert run.status is Status.PASS, run.reason
    name = f"--job-name=tipc-{run.id}-2"
    job = slurm.run("sbatch", "--parsable", name, "--output=/dev/null", "--time=60", "--wrap=sleep 1000").strip()
    wait_for(lambda: slurm.jobs().get(job) == "RUNNING", what="the allocation")
    swept = scheduler.ended(scheduler.start("maintenance"))
    assert f"run {run.id}: Slurm job {job} was ended" in scheduler.log(swept, "leftovers")
    assert "1 allocation of Slurm ended" in scheduler.log(swept, "leftovers")
    slurm.await_idle()


@pytest.mark.full
def test_login_node_away_for_20_s_does_not_end_the_run(airflow: "SlurmAirflow") -> None:
    dag_run = training(airflow)
    airflow.login.close()
    time.sleep(20)
    airflow.login.start()
    run = judged(airflow, dag_run)
    assert run.status is Status.PASS, run.reason
