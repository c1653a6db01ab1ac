"""DAG `bisect`: searches for the commit that made a chain worse."""

from pathlib import Path

from airflow.sdk import DAG

from tipcflow.config.settings import settings
from tipcflow_operators.bisect.check import CHECK, CheckOperator
from tipcflow_operators.bisect.docs import DOC, TASKS
from tipcflow_operators.bisect.params import bisect_params
from tipcflow_operators.bisect.search import SEARCH, SearchOperator
from tipcflow_operators.manual_dag import manual_dag
from tipcflow_operators.tasks.result_verdict import ResultVerdictOperator

BISECT_DAG = "bisect"


def bisect_dag(config_dir: Path | None = None) -> DAG:
    """Return the DAG: check -> search -> verdict."""
    dag = manual_dag(
        BISECT_DAG,
        description="Search for the commit that made a chain slower, less accurate, or fail",
        doc=DOC,
        params=bisect_params(config_dir or settings().config_dir),
    )
    with dag:
        check = CheckOperator(task_id=CHECK, doc_md=TASKS[CHECK])
        search = SearchOperator(task_id=SEARCH, doc_md=TASKS[SEARCH])
        verdict = ResultVerdictOperator(task_id="verdict", of=SEARCH, doc_md=TASKS["verdict"])
        check >> search >> verdict
    return dag
