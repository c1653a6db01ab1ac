"""The only module that imports names outside Airflow's public interface.

`tests/unit/operators/airflow/test_internals.py` checks the names and fails first when Airflow changes.
Public are `airflow.sdk`, `airflow.sdk.exceptions`, `airflow.triggers.base`, `airflow.plugins_manager`,
`airflow.configuration`, `airflow.secrets.base_secrets` and providers. Each name here has a comment: its public
replacement, or why there is none. The names are imported on first use, because a task needs none of the
api-server's modules. Attributes of Airflow's objects outside its public interface are read and overridden here,
too.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
    from airflow.api_fastapi.core_api.datamodels.dag_run import DAGRunPatchBody, TriggerDAGRunPostBody
    from airflow.api_fastapi.core_api.routes.public.dag_run import patch_dag_run, trigger_dag_run
    from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
    from airflow.api_fastapi.logging.decorators import action_logging
    from airflow.executors.local_executor import LocalExecutor
    from airflow.models.connection import Connection
    from airflow.models.dagbag import DBDagBag
    from airflow.models.dagrun import DagRun
    from airflow.models.log import Log
    from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder
    from airflow.sdk.definitions.mappedoperator import MappedOperator
    from airflow.sdk.definitions.param import ParamsDict
    from airflow.sdk.execution_time.comms import TriggerDagRun
    from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS, RuntimeTaskInstance
    from airflow.utils.providers_configuration_loader import providers_configuration_loaded
    from airflow.utils.session import create_session
    from airflow.utils.state import TaskInstanceState
    from werkzeug.security import check_password_hash

__all__ = [
    "SUPERVISOR_COMMS",
    "Connection",
    "DAGRunPatchBody",
    "DBDagBag",
    "DagAccessEntity",
    "DagRun",
    "GetUserDep",
    "LocalExecutor",
    "Log",
    "MappedOperator",
    "ParamsDict",
    "RuntimeTaskInstance",
    "TaskInstanceState",
    "TriggerDAGRunPostBody",
    "TriggerDagRun",
    "WorkloadTracking",
    "action_logging",
    "argument_of",
    "check_password_hash",
    "clears_of",
    "create_session",
    "get_application_builder",
    "get_auth_manager",
    "patch_dag_run",
    "providers_configuration_loaded",
    "requires_access_dag",
    "tries_of",
    "trigger_dag_run",
]

_LocalExecutor = LocalExecutor if TYPE_CHECKING else object

_MODULES = {
    # Pages. Public replacement: none; the documentation of plugins shows apps without a login.
    "get_auth_manager": "airflow.api_fastapi.app",
    "DagAccessEntity": "airflow.api_fastapi.auth.managers.models.resource_details",
    "GetUserDep": "airflow.api_fastapi.core_api.security",
    # Pages: start of a DAG run with the user's permission. Public replacement: `POST /api/v2/dags/ID/dagRuns` from
    # a script in the browser; these are the parts of that route.
    "DBDagBag": "airflow.models.dagbag",
    "TriggerDAGRunPostBody": "airflow.api_fastapi.core_api.datamodels.dag_run",
    # Pages: stop of a DAG run. Public replacement: `PATCH /api/v2/dags/ID/dagRuns/ID`, which knows no owners.
    "DAGRunPatchBody": "airflow.api_fastapi.core_api.datamodels.dag_run",
    "patch_dag_run": "airflow.api_fastapi.core_api.routes.public.dag_run",
    "action_logging": "airflow.api_fastapi.logging.decorators",
    "requires_access_dag": "airflow.api_fastapi.core_api.security",
    "trigger_dag_run": "airflow.api_fastapi.core_api.routes.public.dag_run",
    # `tipcflow access`: roles and users of the FAB provider. Public replacement: its REST API, which requires a
    # running api-server and the login of an admin, who does not exist yet.
    "check_password_hash": "werkzeug.security",
    "get_application_builder": "airflow.providers.fab.auth_manager.cli_commands.utils",
    "providers_configuration_loaded": "airflow.utils.providers_configuration_loader",
    # Webhook: a connection's secret, read in the api-server. Public replacement: none, `BaseHook` is for tasks.
    "Connection": "airflow.models.connection",
    # Pages: DAG run of a run ID. Public replacement: `GET /api/v2/dags/~/dagRuns` with a login of its own.
    "DagRun": "airflow.models.dagrun",
    "create_session": "airflow.utils.session",
    # Pages: actions of users. Public replacement: `GET /api/v2/eventLogs` with a login of its own.
    "Log": "airflow.models.log",
    # Return type of `.partial(...).expand(...)`. Public replacement: none, `airflow.sdk` has no name for it.
    "MappedOperator": "airflow.sdk.definitions.mappedoperator",
    # Params set after the tasks. Public replacement: `airflow.sdk.ParamsDict`, which Airflow's type stubs lack.
    "ParamsDict": "airflow.sdk.definitions.param",
    # Counts and states of DAG runs. Public replacement: the same methods of a task's `ti`; triggers have none.
    "RuntimeTaskInstance": "airflow.sdk.execution_time.task_runner",
    # Start of a DAG run. Public replacement: TriggerDagRunOperator, which has no deadline.
    "SUPERVISOR_COMMS": "airflow.sdk.execution_time.task_runner",
    "TriggerDagRun": "airflow.sdk.execution_time.comms",
    # Executor with preloaded modules. Public replacement: BaseExecutor, and with it an executor of our own.
    "LocalExecutor": "airflow.executors.local_executor",
    "TaskInstanceState": "airflow.utils.state",
}
# Modules of Airflow that tasks import late; a missing one is logged by the executor.
PRELOADED = (
    "airflow.dag_processing.dagbag",
    "airflow.sdk.execution_time.supervisor",
    "airflow.sdk.execution_time.task_runner",
)


def __getattr__(name: str) -> Any:
    """Import one of the names above."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def tries_of(ti: Any) -> int:
    """Return `max_tries` of a task: Airflow increases it when the task is cleared and keeps it when it is retried.

    Public replacement: none; the documentation of `max_tries` does not mention clearing.
    """
    return int(ti.max_tries)


def clears_of(dag_run: Any) -> int:
    """Return how often a DAG run was cleared; -1 if it is unknown.

    Public replacement: none; the column `clear_number` of DAG runs is not in the documentation of the context.
    """
    number = dag_run.clear_number
    return -1 if number is None else int(number)


def argument_of(task: Any, name: str) -> Any:
    """Return a constructor argument of a task, None without it; a mapped task stores it until expansion.

    Public replacement: none; the arguments of `.partial(...)` are in `partial_kwargs`.
    """
    mapped = getattr(task, "partial_kwargs", None)
    return getattr(task, name, None) if mapped is None else mapped.get(name)


class WorkloadTracking(_LocalExecutor):  # type: ignore[misc,valid-type]  # a base class for type checkers only
    """Mixin of Airflow's LocalExecutor: tracks which workloads its workers have.

    Public replacement: none; `BaseExecutor` leaves `running` and `queued_tasks` to each executor.
    """

    def _process_workloads(self, workload_list: Sequence[Any]) -> None:
        for workload in workload_list:
            self.count_workload(workload.key)
            self.running.add(workload.key)
        super()._process_workloads(workload_list)

    def count_workload(self, key: Any) -> None:
        """Count a workload that a worker gets."""
        raise NotImplementedError

    def forget_task(self, key: Any) -> None:
        """Remove a task from the queue and from the tasks that workers have."""
        self.queued_tasks.pop(key, None)
        self.running.discard(key)
