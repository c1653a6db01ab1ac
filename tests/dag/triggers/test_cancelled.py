"""A trigger that Airflow cancels stops its job only if a user has ended the task."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from tipcflow_operators.triggers import cancelled
from tipcflow_operators.triggers.step import StepTrigger


def a_trigger(task: object) -> StepTrigger:
    trigger = StepTrigger(run="r", step="s", awaited="t", until=0.0)
    trigger.task_instance = task
    return trigger


@pytest.mark.parametrize("by_user", [True, False])
def test_state_of_the_trigger_s_task_decides(monkeypatch: pytest.MonkeyPatch, by_user: bool) -> None:
    task = SimpleNamespace(task_id="train")
    seen: list[object] = []
    monkeypatch.setattr(cancelled, "is_ended_by_user", lambda own, log: bool(seen.append(own)) or by_user)
    assert asyncio.run(cancelled.is_by_user(a_trigger(task))) is by_user
    assert seen == [task]


def test_trigger_without_a_task_is_ended_by_a_user() -> None:
    assert asyncio.run(cancelled.is_by_user(a_trigger(None)))


def test_unresponsive_api_server_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    end = threading.Event()
    monkeypatch.setattr(cancelled, "is_ended_by_user", lambda own, log: end.wait(30))
    monkeypatch.setattr(cancelled, "STATE_S", 0.05)

    async def ask() -> bool:
        try:
            return await cancelled.is_by_user(a_trigger(SimpleNamespace(task_id="train")))
        finally:
            end.set()

    assert not asyncio.run(ask())
