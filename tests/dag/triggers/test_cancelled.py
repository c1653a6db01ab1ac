"""Airflow ends processes and triggers of tasks for several reasons; the task's state shows whether a user did."""

import asyncio
import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tipcflow_operators.triggers import cancelled
from tipcflow_operators.triggers.step import StepTrigger

LOG = logging.getLogger(__name__)


def is_ended(monkeypatch: pytest.MonkeyPatch, states: Any, map_index: int = -1) -> bool:
    """The result if Airflow has these states of the task."""
    requested: list[dict[str, Any]] = []

    def get_task_states(**wanted: Any) -> Any:
        requested.append(wanted)
        if isinstance(states, Exception):
            raise states
        return states

    monkeypatch.setattr(cancelled, "RuntimeTaskInstance", SimpleNamespace(get_task_states=get_task_states))
    task = SimpleNamespace(dag_id="d", run_id="now", task_id="train", map_index=map_index)
    result = cancelled.is_ended_by_user(task, LOG)
    assert requested == [{"dag_id": "d", "task_ids": ["train"], "run_ids": ["now"], "map_index": map_index}]
    return result


@pytest.mark.parametrize(
    "state", ["failed", "success", "skipped", "upstream_failed", "removed", "restarting", None]
)
def test_user_marks_or_clears_a_task(monkeypatch: pytest.MonkeyPatch, state: str | None) -> None:
    assert is_ended(monkeypatch, {"now": {"train": state}})


@pytest.mark.parametrize("state", ["deferred", "scheduled", "queued", "running", "up_for_retry"])
def test_task_continues_or_is_retried(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, state: str
) -> None:
    caplog.set_level(logging.INFO)
    assert not is_ended(monkeypatch, {"now": {"train": state}})
    assert caplog.messages == [f"task train is {state}: no user has ended it, nothing is stopped"]
    # Airflow adds the map index to the key.
    assert not is_ended(monkeypatch, {"now": {"train_1": state}}, map_index=1)


def test_deleted_run_is_ended_by_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_ended(monkeypatch, {})


def test_unknown_state_stops_nothing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    assert not is_ended(monkeypatch, RuntimeError("no connection to the api-server"))
    assert caplog.messages == [
        "cannot read the state of task train: RuntimeError('no connection to the api-server');"
        " what it runs is not stopped"
    ]


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
