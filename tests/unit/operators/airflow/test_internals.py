"""What tipcflow uses of Airflow beyond its public interface: in one module, and as the pinned version has it."""

import ast
import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import BaseOperator
from airflow.sdk.api.datamodels._generated import DagRun
from airflow.triggers.base import BaseTrigger

from tipcflow_operators.airflow import internals

ROOT = Path(__file__).parents[4]
PUBLIC = re.compile(
    r"airflow\.(sdk|sdk\.exceptions|triggers\.base|plugins_manager|configuration|secrets\.base_secrets"
    r"|providers\.ssh\.(hooks|operators)\.ssh|providers\.smtp\.notifications\.smtp|providers\.fab\.auth_manager\.fab_auth_manager)"
)


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            if node.module == "airflow":
                found |= {f"airflow.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.partition(".")[0] == "airflow"}


@pytest.mark.slow
def test_only_one_module_imports_private_names_of_airflow() -> None:
    files = [path for folder in ("src", "operators", "plugins", "dags") for path in (ROOT / folder).rglob("*.py")]
    private = {
        path.relative_to(ROOT).as_posix(): names
        for path in files
        if (names := {name for name in imports(path) if not PUBLIC.fullmatch(name)})
    }
    assert list(private) == ["operators/tipcflow_operators/airflow/internals.py"], private


@pytest.mark.slow
def test_tests_with_private_functions_of_airflow_are_listed() -> None:
    """They replace a part of Airflow, whose functions have no public replacement (ADR 18)."""
    private = re.compile(r"^\s*(from|import) airflow.*[ .]_\w", re.MULTILINE)
    files = [path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    assert {path.relative_to(ROOT).as_posix() for path in files if private.search(path.read_text())} == {
        "benchmarks/many_dags_measure.py",  # how a task's process reads a DAG file
        "tests/dag/test_limits.py",  # execute() under its limit
        "tests/unit/operators/airflow/test_internals.py",  # the fields of a DAG run in a task's context
        "tests/unit/operators/triggers/test_old_names.py",  # how the triggerer finds a trigger's class
        "tests/unit/operators/triggers/test_stored.py",  # the same
    }


@pytest.mark.slow
def test_only_one_module_uses_private_attributes_of_airflow() -> None:
    private = re.compile(
        r"\b(clear_number|max_tries|partial_kwargs|_process_workloads|queued_tasks)\b|self\.running\."
    )
    files = [path for folder in ("src", "operators", "plugins", "dags") for path in (ROOT / folder).rglob("*.py")]
    found = [path.relative_to(ROOT).as_posix() for path in files if private.search(path.read_text())]
    assert found == ["operators/tipcflow_operators/airflow/internals.py"]


@pytest.mark.parametrize("name", sorted(set(internals.__all__) - {"SUPERVISOR_COMMS"}))
def test_private_names_of_airflow_exist(name: str) -> None:
    assert getattr(internals, name) is not None


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("get_dr_count", {"dag_id", "run_ids"}),
        ("get_dagrun_state", {"dag_id", "run_id"}),
        ("get_ti_count", {"dag_id", "run_ids", "states"}),
        ("get_task_states", {"dag_id", "task_ids", "run_ids", "map_index"}),
        ("get_dag", {"dag_id"}),
    ],
)
def test_queries_of_dag_runs_need_no_task_instance(method: str, params: set[str]) -> None:
    assert isinstance(inspect.getattr_static(internals.RuntimeTaskInstance, method), staticmethod)
    assert params <= set(inspect.signature(getattr(internals.RuntimeTaskInstance, method)).parameters)


def test_a_dag_run_is_started_by_a_message_to_the_supervisor() -> None:
    from airflow.sdk.execution_time import task_runner

    assert "SUPERVISOR_COMMS" in task_runner.__annotations__
    assert {"dag_id", "run_id", "run_after", "conf", "note"} <= set(internals.TriggerDagRun.model_fields)


def test_a_task_knows_its_tries() -> None:
    assert "max_tries" in internals.RuntimeTaskInstance.model_fields


def test_a_dag_run_counts_its_clears() -> None:
    assert "clear_number" in DagRun.model_fields
    assert [internals.clears_of(SimpleNamespace(clear_number=number)) for number in (None, 0, 2)] == [-1, 0, 2]


class Own(BaseOperator):
    """An operator with an argument of its own."""

    def __init__(self, *, kind: str, node: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kind, self.node = kind, node


def test_a_mapped_task_keeps_its_arguments_until_expansion() -> None:
    plain = Own(task_id="plain", kind="train")
    mapped: Any = Own.partial(task_id="mapped", kind="train").expand(node=["a", "b"])
    assert isinstance(mapped, internals.MappedOperator)
    assert [internals.argument_of(task, "kind") for task in (plain, mapped)] == ["train", "train"]
    assert [internals.argument_of(task, "unknown") for task in (plain, mapped)] == [None, None]


def test_a_trigger_learns_that_its_task_was_stopped() -> None:
    # New in Airflow 3.3: the reason of the lower bound in pyproject.toml.
    assert inspect.iscoroutinefunction(BaseTrigger.on_kill)


def test_overridden_methods_exist_in_the_executor() -> None:
    assert {"key", "state", "info", "remove_running"} <= set(
        inspect.signature(internals.LocalExecutor.change_state).parameters
    )
    assert "workload_list" in inspect.signature(internals.LocalExecutor._process_workloads).parameters
    assert "ti" in inspect.signature(internals.LocalExecutor.revoke_task).parameters
    assert internals.TaskInstanceState.RUNNING == "running"


def test_the_executor_forgets_a_task() -> None:
    class Tracking(internals.WorkloadTracking, internals.LocalExecutor):
        """An executor that tracks its workloads."""

    plain = internals.LocalExecutor(parallelism=1)
    assert (plain.queued_tasks, plain.running) == ({}, set())
    made: Any = Tracking(parallelism=1)
    made.queued_tasks["key"] = "workload"
    made.running.add("key")
    made.forget_task("key")
    assert (made.queued_tasks, made.running) == ({}, set())


def test_the_pages_query_the_auth_manager() -> None:
    from airflow.api_fastapi.auth.managers.base_auth_manager import BaseAuthManager

    assert {"method", "access_entity", "user"} <= set(
        inspect.signature(BaseAuthManager.is_authorized_dag).parameters
    )
    assert callable(BaseAuthManager.get_url_login)
    assert internals.DagAccessEntity.TASK_LOGS


def test_a_dag_run_has_the_columns_of_its_link() -> None:
    assert {"dag_id", "run_id", "run_after"} <= set(internals.DagRun.__table__.columns.keys())
