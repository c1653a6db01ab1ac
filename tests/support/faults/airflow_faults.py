"""Faults of Airflow's own processes, and what people do to a run in it."""

import os
import signal
import time

from tests.support.faults.airflow_case import AirflowCase
from tests.support.scheduler import DAG

from devcluster.local_nodes.processes import children

TRAIN = "train"


def scheduler_killed(case: AirflowCase) -> None:
    """While workers of its executor watch the training."""
    _restarted(case, "scheduler")


def triggerer_killed(case: AirflowCase) -> None:
    """While it watches the training."""
    _restarted(case, "triggerer", deferred=True)


def api_server_killed(case: AirflowCase) -> None:
    """While tasks talk to it."""
    _restarted(case, "api-server")


def _restarted(case: AirflowCase, component: str, *, deferred: bool = False) -> None:
    gate = case.gate()
    running = case.begin()
    gate.wait(running)
    if deferred:
        case.wait_for(running.is_deferred, "the deferral", 120)
    case.restart(component)
    gate.open()
    case.finish(running)
    _trained_once(case)


def _trained_once(case: AirflowCase) -> None:
    """The job stayed and was found again: nothing was trained twice."""
    assert case.run is not None
    with case.site.store() as store:
        tried = [one.step for one in store.attempts.of(case.run.id)]
    assert len(tried) == len(set(tried)), f"tried more than once: {tried}"


def worker_killed(case: AirflowCase) -> None:
    """The processes that execute the training's tasks, and the workers they were forked from."""
    gate = case.gate()
    running = case.begin()
    gate.wait(running)
    case.now()
    for worker, tasks in _busy_workers(case).items():
        for pid in (*tasks, worker):
            os.kill(pid, signal.SIGKILL)
    gate.open()
    case.finish(running)
    _trained_once(case)


def worker_shut_down(case: AirflowCase) -> None:
    """A pod that is deleted sends SIGTERM to the supervisor of its task, which sends the signal to the task."""
    gate = case.gate()
    running = case.begin()
    gate.wait(running)
    case.now()
    for worker in _busy_workers(case):
        os.kill(worker, signal.SIGTERM)
    case.wait_for(lambda: "no user has ended it" in running.printed, "the signal's line in the log", 60)
    gate.open()
    case.finish(running)
    _trained_once(case)


def worker_unresponsive(case: AirflowCase) -> None:
    """Until their tasks are retried; then the workers continue, and the api-server refuses their heartbeats."""
    case.shorten_heartbeats()
    gate = case.gate()
    running = case.begin()
    gate.wait(running)
    case.now()
    pids = [pid for worker, tasks in _busy_workers(case).items() for pid in (worker, *tasks)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        case.wait_for(lambda: case.retried(running, TRAIN), "a retry of both tasks", 180)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    case.wait_for(lambda: "Task killed!" in running.printed, "the end of the workers' first tasks", 120)
    gate.open()
    case.finish(running)
    _trained_once(case)


def _busy_workers(case: AirflowCase) -> dict[int, list[int]]:
    """Processes of workers of the executor that execute a task -> processes of the task."""
    workers = {worker: children(worker) for worker in children(case.scheduler.stack.pids["scheduler"])}
    busy = {worker: tasks for worker, tasks in workers.items() if tasks}
    assert busy, "no worker executes a task"
    return busy


def task_cleared(case: AirflowCase) -> None:
    """One node's training task, in the middle of the training: the whole gang begins again."""
    gate = case.gate()
    running = case.begin()
    gate.wait(running)
    gate.shut()
    train = next(one for one in case.scheduler.tasks(running.dag_run) if one.task_id.endswith(f".{TRAIN}"))
    case.now()
    case.clear_mapped(running, train.task_id, 1)
    gate.wait(running, seconds=180)
    gate.open()
    case.finish(running)
    assert case.run is not None
    with case.site.store() as store:
        tried = {one.attempt: one.nodes for one in store.attempts.of(case.run.id) if one.step.endswith(TRAIN)}
    assert max(tried) > 1, "nothing was trained again"
    assert set(tried[max(tried)]) == {"a", "b"}


def one_worker_slot(case: AirflowCase) -> None:
    """All tasks of a run, and so those of a gang, take turns in the only slot that there is."""
    path = "/api/v2/pools/default_pool"
    slots = case.scheduler.call("GET", path).json()["slots"]

    def resize(number: int) -> None:
        case.scheduler.call("PATCH", path, params={"update_mask": "slots"}, json={"slots": number})

    case.stack.callback(resize, slots)
    resize(1)
    running = case.begin()
    case.now()
    case.finish(running, seconds=420)
    _trained_once(case)
    assert case.run is not None
    with case.site.store() as store:
        (train,) = [one for one in store.attempts.of(case.run.id) if one.step.endswith(TRAIN)]
    assert {record.node for record in train.records} == {"a", "b"}


def queued_run_deleted(case: AirflowCase) -> None:
    """A run that Airflow has not begun, since its DAG is paused; another one passes afterwards."""
    path = f"/api/v2/dags/{DAG}"
    case.scheduler.call("PATCH", path, json={"is_paused": True})
    try:
        gone = case.begin()
        time.sleep(1.0)  # it would have begun by now
        case.now()
        case.scheduler.call("DELETE", f"{path}/dagRuns/{gone.dag_run.run_id}")
    finally:
        case.scheduler.call("PATCH", path, json={"is_paused": False})
    with case.site.store() as store:
        assert store.runs.known([gone.id]) == {}
    running = case.begin()
    case.finish(running)
