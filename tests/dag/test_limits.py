"""No task holds a worker without a limit, and a task that exceeds it leaves its jobs alone."""

import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowTaskTimeout
from airflow.sdk.execution_time.task_runner import _run_execute_callable

from tipcflow_operators.ab.dag import ab_dag
from tipcflow_operators.bisect.dag import bisect_dag
from tipcflow_operators.chain.dag import certify_dag, chain_dags
from tipcflow_operators.confirm.dag import confirm_dag
from tipcflow_operators.limits import MARGIN, longest
from tipcflow_operators.maintenance.dag import maintenance_dag
from tipcflow_operators.scaling.dag import scaling_dag
from tipcflow_operators.tasks import step
from tipcflow_operators.tasks.step import StepOperator
from tipcflow_operators.weekly.dag import weekly_dag

ROOT = Path(__file__).parents[2]
SHORT = timedelta(seconds=0.3)


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "configs", tmp_path / "configs"))


def dags(configs: Path) -> list[DAG]:
    chains = chain_dags("mobilenet_v3_small", configs).values()
    mine = [ab_dag(configs), bisect_dag(configs), certify_dag(configs), confirm_dag(), scaling_dag(configs)]
    return [*chains, *mine, weekly_dag(configs), maintenance_dag()]


def test_every_task_has_a_limit(configs: Path) -> None:
    tasks = [task for dag in dags(configs) for task in dag.tasks]
    assert len(tasks) > 20
    assert [task.task_id for task in tasks if not task.execution_timeout] == []


def test_the_limit_exceeds_the_longest_run_of_any_policy(configs: Path) -> None:
    assert longest(configs) == timedelta(minutes=1440 + 3 * 60) + MARGIN
    for policy in (configs / "policies").glob("*.yaml"):
        policy.unlink()
    (configs / "policies" / "long.yaml").write_text(
        "name: long\nbudget_minutes: 100\nconfirm_minutes: 10\n"
        "overrides: [{model: big, because: it is big, set: {budget_minutes: 300}}]\n"
    )
    (configs / "policies" / "broken.yaml").write_text("name: [\n")
    assert longest(configs) == timedelta(minutes=310) + MARGIN
    (configs / "policies" / "long.yaml").write_text(
        "name: long\nbudget_minutes: 100\nconfirm_minutes: 10\nconfirm_runs: 3\n"
        "overrides: [{model: big, because: it is big, set: {budget_minutes: 280}}]\n"
    )
    assert longest(configs) == timedelta(minutes=310) + MARGIN
    chain = next(iter(chain_dags("mobilenet_v3_small", configs).values()))
    limits = {task.task_id.rpartition(".")[2]: task.execution_timeout for task in chain.tasks}
    assert limits["train"] == limits["collect"] == timedelta(minutes=310) + MARGIN
    assert limits["resolve"] == limits["verdict"] == timedelta(hours=1)


class Recorder:
    """The part of a step that a task does."""

    def __init__(self) -> None:
        self.stopped: list[str] = []

    def stop(self, why: str) -> None:
        self.stopped.append(why)


def run(operator: StepOperator, execute: Callable[..., Any]) -> None:
    """What Airflow's task runner does, once per stay on a worker."""
    _run_execute_callable({}, execute, operator)  # type: ignore[typeddict-item]


def running_step(monkeypatch: pytest.MonkeyPatch, *, by_user: bool) -> tuple[StepOperator, Recorder]:
    """A task in the middle of its step; Airflow knows whether a user has ended it."""
    operator = StepOperator(task_id="train", kind="train", execution_timeout=SHORT)
    part: Any = Recorder()
    operator._task, operator._instance = part, SimpleNamespace()
    monkeypatch.setattr(step, "is_ended_by_user", lambda task, log: by_user)
    return operator, part


def test_a_task_that_exceeds_its_limit_leaves_its_job_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    operator, part = running_step(monkeypatch, by_user=True)
    with pytest.raises(AirflowTaskTimeout):
        run(operator, lambda context: time.sleep(10))
    assert part.stopped == []
    operator.on_kill()
    assert part.stopped == ["stopped from Airflow"], "a user stops it as ever"


def test_a_task_whose_worker_is_shut_down_leaves_its_job_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    operator, part = running_step(monkeypatch, by_user=False)
    operator.on_kill()
    assert part.stopped == []
    assert not operator._killed, "a step that begins now is not stopped either"


def test_a_task_that_has_not_begun_stops_nothing() -> None:
    operator = StepOperator(task_id="train", kind="train")
    operator.on_kill()
    assert not operator._killed


def test_resumed_task_has_the_full_time_limit() -> None:
    operator = StepOperator(task_id="train", kind="train", execution_timeout=SHORT)
    for _ in range(3):
        run(operator, lambda context: time.sleep(0.2))
