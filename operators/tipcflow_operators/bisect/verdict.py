"""Last task of the DAG `bisect`: fails if no commit has the required probability."""

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException

from tipcflow.domain import Status, exit_code
from tipcflow_operators.bisect.search import SEARCH
from tipcflow_operators.tasks.verdict import set_note


class BisectVerdictOperator(BaseOperator):
    """Fails if and only if the exit code of `tipcflow bisect` for this result is not 0."""

    def execute(self, context: Context) -> str:
        """Called by Airflow; returns the result in one line."""
        result = context["ti"].xcom_pull(task_ids=SEARCH)
        status, verdict = Status(result["status"]), str(result["verdict"])
        if result["run"]:
            self.log.info("the result is stored with run %s", result["run"])
        set_note(context, verdict, self.log)
        if exit_code(status):
            raise AirflowFailException(f"{status.value}: {verdict}")
        self.log.info("%s", verdict)
        return verdict
