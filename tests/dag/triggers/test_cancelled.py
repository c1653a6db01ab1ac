"""A trigger that Airflow cancels stops its job only if a user has ended the task."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tipcflow_operators.triggers import cancelled
from tipcflow_operators.triggers.step import StepTrigger


def is_by_user(monkeypatch: pytest.MonkeyPatch, states: Any, map_index: int = -1) -> bool:
    """The result if Airflow has these states of the task."""
    trigger = StepTrigger(run="r", step="s", awaited="t", until=0.0)
    trigger.task_instance = SimpleNamespace(dag_id="d", run_id="now", task_id="train", map_index=map_index)
    requested: list[dict[str, Any]] = []

    def get_task_states(**wanted: Any) -> Any:
        requested.append(wanted)
        if isinstance(states, Exception):
            raise states
        return states

    monkeypatch.setattr(cancelled, "RuntimeTaskInstance", SimpleNamespace(get_task_states=get_task_states))
    result = asyncio.run(cancelled.is_by_user(trigger))
    assert requested == [{"dag_id": "d", "task_ids": ["train"], "run_ids": ["now"], "map_index": map_index}]
    return result


@pytest.mark.parametrize(
    "state", ["failed", "success", "skipped", "upstream_failed", "removed", "restarting", None]
)
def test_user_marks_or_clears_a_task(monkeypatch: pytest.MonkeyPatch, state: str | None) -> None:
    assert is_by_user(monkeypatch, {"now": {"train": state}})


@pytest.mark.parametrize("state", ["deferred", "scheduled", "queued", "running", "up_for_retry"])
def test_another_triggerer_takes_over(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    assert not is_by_user(monkeypatch, {"now": {"train": state}})
    # Airflow adds the map index to the key.
    assert not is_by_user(monkeypatch, {"now": {"train_1": state}}, map_index=1)


def test_deleted_run_is_ended_by_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_by_user(monkeypatch, {})


def test_unknown_state_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_by_user(monkeypatch, RuntimeError("no connection to the api-server"))
