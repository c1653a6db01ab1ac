"""A SQLite metrics database is refused where Airflow's tasks may run on several machines."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from tipcflow.store import Store
from tipcflow_operators.airflow.database import executors
from tipcflow_operators.maintenance.dag import SweepOperator
from tipcflow_operators.tasks.base import RunOperator
from tipcflow_operators.weekly.select import SelectOperator

CELERY = "airflow.providers.celery.executors.celery_executor.CeleryExecutor"
REFUSED = "CeleryExecutor runs tasks on several machines, which cannot share a SQLite file"


class DagRun:
    dag_id, run_id, run_after, conf = "certify", "manual", datetime(2026, 11, 22, 8, tzinfo=UTC), None


CONTEXT: Any = {"dag_run": DagRun(), "params": {}}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    monkeypatch.delenv("TIPCFLOW_DATABASE_URL", raising=False)
    return tmp_path


def execute(operator: Any) -> None:
    type(operator).execute.__wrapped__(operator, CONTEXT)


@pytest.mark.parametrize("executor", ["CeleryExecutor", CELERY, "LocalExecutor,CeleryExecutor"])
@pytest.mark.parametrize(
    "operator",
    [
        RunOperator(task_id="resolve"),
        SelectOperator(task_id="select"),
        SweepOperator(task_id="retention", sweep="retention"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_first_tasks_refuse_sqlite_and_create_no_database(
    home: Path, monkeypatch: pytest.MonkeyPatch, operator: Any, executor: str
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", executor)
    with pytest.raises(AirflowFailException, match=REFUSED):
        execute(operator)
    assert list(home.glob("*.db*")) == []


@pytest.mark.parametrize("executor", ["LocalExecutor", "tipcflow_operators.airflow.executor.LocalExecutor"])
def test_sqlite_file_is_allowed_on_a_single_machine(
    home: Path, monkeypatch: pytest.MonkeyPatch, executor: str
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", executor)
    with pytest.raises(NotImplementedError):  # the part of a task that subclasses do
        execute(RunOperator(task_id="resolve"))
    assert list(home.glob("*.db"))


def test_a_server_may_be_shared(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []

    def opened(cls: type[Store]) -> Any:
        requests.append("opened")
        raise RuntimeError("enough")

    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", CELERY)
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", "postgresql://u@db/metrics")
    monkeypatch.setattr(Store, "open_in_task", classmethod(opened))
    with pytest.raises(RuntimeError, match="enough"):
        execute(RunOperator(task_id="resolve"))
    assert requests == ["opened"]


@pytest.mark.parametrize(
    ("configured", "names"),
    [
        ("LocalExecutor", ["LocalExecutor"]),
        ("LocalExecutor, CeleryExecutor", ["LocalExecutor", "CeleryExecutor"]),
        (f"celery:{CELERY}", ["CeleryExecutor"]),
        ("LocalExecutor;team1=my.pkg.OwnExecutor,alias:a.b.C", ["LocalExecutor", "OwnExecutor", "C"]),
    ],
)
def test_names_of_executors_are_read_from_the_configuration(configured: str, names: list[str]) -> None:
    assert executors(configured) == names
