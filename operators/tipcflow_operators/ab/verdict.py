"""Last task of the DAG `ab`: fails if B is worse, or if that is undecided."""

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException

from tipcflow.domain import Status, exit_code
from tipcflow_operators.ab.compare import COMPARE
from tipcflow_operators.tasks.verdict import set_note


class AbVerdictOperator(BaseOperator):
    """Fails if and only if the exit code of `tipcflow ab` for this result is not 0."""

    def execute(self, context: Context) -> str:
        """Called by Airflow; returns the verdict."""
        result = context["ti"].xcom_pull(task_ids=COMPARE)
        status, verdict = Status(result["status"]), str(result["verdict"])
        if result["run"]:
            self.log.info("the result is stored with run %s", result["run"])
        set_note(context, verdict, self.log)
        if exit_code(status):
            raise AirflowFailException(f"{status.value}: {verdict}")
        self.log.info("%s", verdict)
        return verdict
