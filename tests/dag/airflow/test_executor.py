"""The executor that imports before it forks."""

import inspect
import multiprocessing
import queue
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.executors import local_executor
from airflow.models.taskinstancekey import TaskInstanceKey
from airflow.utils.state import TaskInstanceState as State

from tipcflow_operators.airflow import executor


def test_workers_are_forked_after_the_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(executor, "warm", lambda: order.append("imports"))
    monkeypatch.setattr(local_executor.LocalExecutor, "start", lambda _: order.append("workers"))
    executor.LocalExecutor(parallelism=1).start()
    assert order == ["imports", "workers"]


def test_airflow_treats_the_executor_as_local() -> None:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    name = f"{executor.LocalExecutor.__module__}.{executor.LocalExecutor.__qualname__}"
    assert executor.LocalExecutor.is_local
    assert not SimpleAuthManager._looks_like_production(
        sql_conn="sqlite:////x", api_host="127.0.0.1", executor=name
    )


KEY = TaskInstanceKey("chain", "train", "run", 1, 0)
TASK: Any = SimpleNamespace(key=KEY, id="id")
WORK: Any = SimpleNamespace(key=KEY, ti=SimpleNamespace(priority_weight=1))


@pytest.fixture
def one() -> Iterator[executor.LocalExecutor]:
    """An executor without workers: what they would report is put into its queue of results."""
    made = executor.LocalExecutor(parallelism=1)
    made.is_mp_using_fork = False
    local_executor.LocalExecutor.start(made)
    made._check_workers = lambda: None  # type: ignore[method-assign]
    yield made
    made.activity_queue.close()
    made.result_queue.close()


def _give(one: executor.LocalExecutor) -> None:
    one.queued_tasks[KEY] = WORK
    one.trigger_tasks(1)


def _reports(one: executor.LocalExecutor, *states: State) -> dict[Any, Any]:
    for state in states:
        one.result_queue.put((KEY, state, None))
    one.sync()
    return {key: state for key, (state, _) in one.get_event_buffer().items()}


def test_a_task_that_a_worker_has_is_known_and_uses_a_slot(one: executor.LocalExecutor) -> None:
    assert one.slots_available == 1
    _give(one)
    assert (one.has_task(TASK), one.slots_available) == (True, 0)
    assert _reports(one, State.RUNNING) == {KEY: State.RUNNING}
    assert (one.has_task(TASK), one.slots_available) == (True, 0)
    assert _reports(one, State.SUCCESS) == {KEY: State.SUCCESS}
    assert (one.has_task(TASK), one.slots_available) == (False, 1)


def test_late_end_of_a_deferred_task_does_not_end_the_resumed_task(one: executor.LocalExecutor) -> None:
    _give(one)
    _give(one)  # the trigger fired while the first process was ending
    assert _reports(one, State.RUNNING, State.SUCCESS) == {KEY: State.RUNNING}
    assert one.has_task(TASK)
    assert _reports(one, State.RUNNING, State.FAILED) == {KEY: State.FAILED}
    assert (one.has_task(TASK), one.slots_available) == (False, 1)


def test_a_task_whose_worker_died_is_released(one: executor.LocalExecutor) -> None:
    _give(one)
    one.revoke_task(ti=TASK)
    assert (one.has_task(TASK), one.slots_available) == (False, 1)
    _give(one)
    assert _reports(one, State.RUNNING, State.SUCCESS) == {KEY: State.SUCCESS}
    assert one.slots_available == 1
    one.revoke_task(ti=TASK)  # unknown by now
    assert one.slots_available == 1


def test_the_scheduler_fails_a_task_without_heartbeat(one: executor.LocalExecutor) -> None:
    _give(one)
    one.change_state(KEY, State.FAILED, remove_running=True)
    assert (one.has_task(TASK), one.slots_available) == (False, 1)


def test_airflows_local_executor_lacks_the_behavior_of_the_overrides() -> None:
    """If this fails, Airflow tracks or revokes tasks itself: compare, then drop our overrides."""
    plain = local_executor.LocalExecutor(parallelism=1)
    plain.is_mp_using_fork = False
    plain.start()
    plain._check_workers = lambda: None  # type: ignore[method-assign]
    try:
        _give(plain)
        assert (plain.has_task(TASK), plain.running, plain.slots_available) == (False, set(), 1)
        with pytest.raises(NotImplementedError):
            plain.revoke_task(ti=TASK)
    finally:
        plain.activity_queue.close()
        plain.result_queue.close()


def test_a_worker_reports_a_task_by_its_key_and_only_its_end() -> None:
    """The count of workloads needs one report at the end of each; `running` reports are ignored by it."""
    from airflow.executors.workloads import ExecuteTask

    states = [getattr(ExecuteTask, f"{name}_state") for name in ("running", "success", "failure")]
    work = SimpleNamespace(ti=SimpleNamespace(key=KEY))
    assert [state.fget(work) for state in states] == [None, State.SUCCESS, State.FAILED]
    assert ExecuteTask.key.fget(work) == KEY  # type: ignore[attr-defined]


@pytest.mark.parametrize(("fails", "end"), [(False, "success"), (True, "failure")])
def test_a_worker_reports_the_begin_and_one_end_of_each_workload(
    monkeypatch: pytest.MonkeyPatch, fails: bool, end: str
) -> None:
    def run(*_: Any, **__: Any) -> None:
        if fails:
            raise RuntimeError("killed")

    monkeypatch.setattr(local_executor.BaseExecutor, "run_workload", run)
    monkeypatch.setattr(local_executor, "setproctitle", lambda *_: None)
    monkeypatch.setattr(local_executor, "get_execution_api_server_url", lambda *_: "")
    monkeypatch.setattr("signal.signal", lambda *_: None)
    states = {"running_state": "running", "success_state": "success", "failure_state": "failure"}
    work = SimpleNamespace(key=KEY, display_name="train", **states)
    given: queue.SimpleQueue[Any] = queue.SimpleQueue()
    reports: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for item in (work, None):
        given.put(item)
    team: Any = SimpleNamespace(team_name=None)
    local_executor._run_worker("test", given, reports, multiprocessing.Value("i", 1), team)  # type: ignore[arg-type]
    found = [reports.get()[:2] for _ in range(reports.qsize())]
    assert found == [(KEY, "running"), (KEY, end)]


def test_the_executor_overrides_existing_methods() -> None:
    own = {name for name, value in vars(executor.LocalExecutor).items() if inspect.isfunction(value)}
    assert own == {"__init__", "start", "count_workload", "change_state", "revoke_task"}
    for name in (own | {"_process_workloads"}) - {"__init__", "count_workload"}:
        theirs = inspect.signature(getattr(local_executor.LocalExecutor, name)).parameters
        ours = inspect.signature(getattr(executor.LocalExecutor, name)).parameters
        assert list(ours) == list(theirs), name
