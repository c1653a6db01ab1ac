"""Last task of a DAG whose result is not the status of one run: `ab`, `bisect`."""

from typing import Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException

from tipcflow.domain import Status, exit_code
from tipcflow_operators.tasks.verdict import set_note


class ResultVerdictOperator(BaseOperator):
    """Fails if and only if the exit code of the CLI for the result of a task is not 0.

    Args:
        of: ID of the task that returned `status`, `verdict` (one line) and `run`, with which the result is stored.
    """

    def __init__(self, *, of: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.of = of

    def execute(self, context: Context) -> str:
        """Called by Airflow; returns the verdict."""
        result = context["ti"].xcom_pull(task_ids=self.of)
        status, verdict = Status(result["status"]), str(result["verdict"])
        if result["run"]:
            self.log.info("the result is stored with run %s", result["run"])
        set_note(context, verdict, self.log)
        if exit_code(status):
            raise AirflowFailException(f"{status.value}: {verdict}")
        self.log.info("%s", verdict)
        return verdict
