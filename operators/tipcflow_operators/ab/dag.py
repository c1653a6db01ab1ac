"""DAG `ab`: compares two versions of a suite or framework."""

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from tipcflow.config.settings import settings
from tipcflow_operators.ab.check import CHECK, CheckOperator
from tipcflow_operators.ab.compare import COMPARE, CompareOperator
from tipcflow_operators.ab.docs import DOC, TASKS
from tipcflow_operators.ab.params import ab_params
from tipcflow_operators.ab.verdict import AbVerdictOperator
from tipcflow_operators.limits import SHORT

AB_DAG = "ab"
# A task that dies with its worker is retried and resumes its work. A failure that a task reports is final.
_DEFAULTS = {"retries": 2, "retry_delay": timedelta(seconds=10), "owner": "tipcflow", "execution_timeout": SHORT}


def ab_dag(config_dir: Path | None = None) -> DAG:
    """Return the DAG: check -> compare -> verdict."""
    dag = DAG(
        dag_id=AB_DAG,
        description="Compare two versions of a suite or framework by pairs of runs",
        doc_md=DOC,
        schedule=None,
        catchup=False,
        max_active_runs=16,
        # The DAG has no schedule; a paused DAG would only hold back triggered runs.
        is_paused_upon_creation=False,
        tags=["tipcflow", "compare"],
        params=ab_params(config_dir or settings().config_dir),
        default_args=_DEFAULTS,
    )
    with dag:
        check = CheckOperator(task_id=CHECK, doc_md=TASKS[CHECK])
        compare = CompareOperator(task_id=COMPARE, doc_md=TASKS[COMPARE])
        verdict = AbVerdictOperator(task_id="verdict", doc_md=TASKS["verdict"])
        check >> compare >> verdict
    return dag
