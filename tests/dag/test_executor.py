"""The executor that imports before it forks."""

import logging
import sys

import pytest
from airflow.executors import local_executor

from operators.airflow import executor


def test_everything_that_tasks_need_can_be_imported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="operators.airflow.executor"):
        executor.warm()
    assert caplog.messages == []
    needed = (
        "operators.tasks.step",
        "operators.tasks.verdict",
        "tipcflow.execute.run.step",
        "tipcflow.store.runs",
        "asyncssh",
    )
    assert [name for name in needed if name not in sys.modules] == []


def test_what_cannot_be_imported_is_said_and_left_for_its_task(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(executor, "_LATE", ("operators.no_such_module",))
    executor.warm()
    assert caplog.messages == [
        "cannot preload operators.no_such_module: No module named 'operators.no_such_module'"
    ]


def test_workers_are_forked_after_the_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(executor, "warm", lambda: order.append("imports"))
    monkeypatch.setattr(local_executor.LocalExecutor, "start", lambda _: order.append("workers"))
    executor.LocalExecutor(parallelism=1).start()
    assert order == ["imports", "workers"]


def test_airflow_takes_it_for_a_local_one() -> None:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    name = f"{executor.LocalExecutor.__module__}.{executor.LocalExecutor.__qualname__}"
    assert executor.LocalExecutor.is_local
    assert not SimpleAuthManager._looks_like_production(
        sql_conn="sqlite:////x", api_host="127.0.0.1", executor=name
    )
