"""The DAG `pull_request`: scheduled only where a repository is configured; it waits without a worker."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from airflow.serialization.serialized_objects import DagSerialization
from tests.support.stories import a_run

from tipcflow.domain import CheckResult, Status
from tipcflow.execute.alerts.track import track_alerts
from tipcflow.store import Store
from tipcflow_operators.pull_request import trigger as triggers
from tipcflow_operators.pull_request.dag import pull_request_dag
from tipcflow_operators.pull_request.trigger import PullRequestTrigger

CONTEXT: Any = {}


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder, name in (("suites", "toy"), ("clusters", "local"), ("policies", "pr")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.yaml").touch()
    own = {"name": "o/r", "connection": "app", "suite": "toy", "cluster": "local"}
    (tmp_path / "repositories").mkdir()
    (tmp_path / "repositories" / "r.yaml").write_text(yaml.safe_dump(own))
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", f"sqlite:///{tmp_path / 'tipcflow.db'}")
    return tmp_path


def add(store: Store) -> None:
    store.outbox.add(
        delivery="delivery-1",
        body_sha256="0" * 64,
        connection="app",
        repository="",
        event="ping",
        body={"hook": 1},
    )


def test_dag_has_a_schedule_only_with_a_repository(
    configs: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with_one = DagSerialization.from_dict(DagSerialization.to_dict(pull_request_dag(configs)))
    assert with_one.timetable.can_be_scheduled
    assert with_one.max_active_runs == 1
    without = pull_request_dag(tmp_path_factory.mktemp("none"))
    assert not without.timetable.can_be_scheduled


def test_task_without_work_defers(configs: Path) -> None:
    (task,) = pull_request_dag(configs).tasks
    with pytest.raises(TaskDeferred) as caught:
        task.execute(CONTEXT)
    assert isinstance(caught.value.trigger, PullRequestTrigger)
    assert caught.value.trigger.seconds == 3600


def test_waiting_work_is_done_at_once(configs: Path) -> None:
    with Store.open() as store:
        add(store)
    (task,) = pull_request_dag(configs).tasks
    assert task.execute(CONTEXT) == "1 deliveries"
    with Store.open() as store:
        assert store.outbox.waiting() == 0


def test_event_of_an_alert_wakes_the_task_if_issues_are_wanted(configs: Path) -> None:
    (task,) = pull_request_dag(configs).tasks

    def alert_events() -> int | None:
        with pytest.raises(TaskDeferred) as caught:
            task.execute(CONTEXT)
        return caught.value.trigger.alert_events

    assert alert_events() is None
    (file,) = (configs / "repositories").glob("*.yaml")
    file.write_text(file.read_text() + "\nalerts: issues\n")
    known = alert_events()
    assert known == 0
    assert not triggers.waits(known)
    with Store.open() as store:
        run = a_run(status=Status.REGRESSION, ended_at=1_795_000_100.0)
        store.runs.create(run)
        common: dict[str, Any] = {"step": "v/train", "metric": "ips", "reason": "slower"}
        track_alerts(store, run, [CheckResult(check="speed.ips", status=Status.REGRESSION, **common)])
    assert triggers.waits(known)
    assert not triggers.waits()


def test_an_invalid_file_fails_after_a_pause(configs: Path) -> None:
    """Without the pause, a continuous DAG would fail all the time."""
    (configs / "repositories" / "r.yaml").write_text("name: nothing\n")
    with Store.open() as store:
        add(store)
    (task,) = pull_request_dag(configs).tasks
    with pytest.raises(TaskDeferred) as caught:
        task.execute(CONTEXT)
    trigger = caught.value.trigger
    assert "r.yaml" in trigger.problem
    with pytest.raises(AirflowFailException, match="config_error"):
        task.resume(CONTEXT, {"problem": trigger.problem})


def test_the_trigger_fires_for_work_and_not_before(configs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SETTLE_S", "POLL_S"):
        monkeypatch.setattr(triggers, name, 0.01)
    with Store.open() as store:
        store.runs.create(a_run())
    assert not triggers.waits()

    async def wait() -> None:
        trigger = PullRequestTrigger(seconds=60)
        path, fields = trigger.serialize()
        assert path == f"{PullRequestTrigger.__module__}.PullRequestTrigger"
        event = asyncio.create_task(anext(PullRequestTrigger(**fields).run()))
        await asyncio.sleep(0.3)
        assert not event.done()
        with Store.open() as store:
            add(store)
        await asyncio.wait_for(event, 30)

    asyncio.run(wait())
